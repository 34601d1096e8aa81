"""The leaderboard: submissions as JSON files, and a static site that is a pure function of them.

- `submission`: what a file holds, and what makes one valid
- `submit`: a run as a submission
- `published`: the papers' tables as submissions, cited
- `site`: the pages
- `verify`: a few cells of a submission run again
"""
