"""Verbs that learning outcomes begin with."""

from __future__ import annotations

_WORDS = """
    adapt add analyse analyze apply ask assemble attach benchmark bring build
    calculate call change check choose classify clean clear collect combine compare
    compile compute configure connect control convert count create customise customize
    cut debug define deploy describe design detect determine develop discover display
    distribute download draw edit enable estimate evaluate examine execute explain
    explore export extract feed fill find fine-tune finetune fit fix follow generate
    get give group halve handle identify implement import improve increase infer
    inspect install integrate interpret investigate judge keep label launch learn let
    list load locate look lower make manage map mark measure mix model modify monitor
    move name observe open optimise optimize organise organize pack partition perform
    pick pipeline place plan play plot port predict prepare process profile prune put
    quantise quantize query read recognise recognize recompute record reduce release
    remove render repeat replace reproduce reuse review rewrite run sample save scale
    search see select send set share shard show simulate solve specify speed split
    start stop store study summarise summarize swap switch take test time trace track
    train transcribe transfer transform translate try tune turn understand upload use
    validate vary verify view visualise visualize walk watch work wrap write
"""
VERBS = frozenset(_WORDS.split())
