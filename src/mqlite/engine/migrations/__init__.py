"""Numbered schema migrations, one SQL file each, applied in order inside one transaction.

A file that has been released is never edited: its checksum stands in the ledger of every
database it was applied to.
"""
