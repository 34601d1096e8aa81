"""The leaderboard: submissions as JSON files, and a static site that is a pure function of them.

- `submission`: what a file holds, what makes one valid, and a run as one
- `published`: the papers' tables as submissions, cited
- `site`: the pages
- `verify`: a few cells of a submission, run again
"""
