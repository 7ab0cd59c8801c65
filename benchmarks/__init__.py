"""Speed and memory as ratios against what a user would pick instead, measured in the same run.

Each module has ``main()`` that prints lines ``bench NAME RATIO unit what-against-what``.
"""
