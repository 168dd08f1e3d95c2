"""Records of a report as frozen dataclasses: programs, compute sets, memory, steps.

`contents.ReportContents` gathers them for writing and `read.Report` hands out
the same types, so what was written and what is read back can be compared. No
record knows of SQL; `tables/` maps them to the file.
"""
