"""The rules for notebooks, one file per family; each exports RULES."""
