"""Plan rules, one file per op family; each exports RULES: op kind to rule."""
