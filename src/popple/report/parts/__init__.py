"""The records a report is made of, as plain frozen dataclasses.

`contents.ReportContents` gathers them for writing and `read.Report` hands out
the same types, so what was written and what is read back can be compared. No
record knows of SQL; `tables/` maps them to the file.
"""
