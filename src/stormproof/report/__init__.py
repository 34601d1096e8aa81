"""The report: what a run's scores say, as a page, as figures for a paper, and as a leaderboard.

- `subject`: one run (or one published grid) as numbers and names
- `elements`: what a page is made of: sections, figures and tables, all plain data
- `sections/`: each a function from subjects to a section, or to nothing where the runs lack what it needs
- `view`: all sections together: one pure function of scores
- `charts` (Vega-Lite), `figures` (matplotlib): the two ways to draw a figure
- `imagery`, `album`, `worst`: images made again from run and dataset
- `page`, `templates/`: the self-contained file
- `comparison`: two runs side by side
- `leaderboard/`: submissions, and the site that is a pure function of them

A report never computes a metric: scores come from `scoring`, what papers conclude from `robustness`.
"""
