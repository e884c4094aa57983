#!/usr/bin/env python3
"""A page stays short: length.py PAGE MOST-WORDS"""
import sys

page, most = sys.argv[1], int(sys.argv[2])
words = len(open(page, encoding="utf-8").read().split())
if words > most:
    sys.exit(f"{page} has {words} words, {most} at most: move what is new to a page in doc/")
