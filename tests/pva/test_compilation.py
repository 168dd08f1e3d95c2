"""What was compiled, as views of the report made by hand: two chips, eight tiles."""

from __future__ import annotations

import pytest

import pva


def test_graph_and_target(report: pva.Report) -> None:
    assert report.compilation.graph == (1, 16, 4, 12)
    assert report.compilation.graph.numComputeSets == 1
    target = report.compilation.target
    assert (target.numIPUs, target.tilesPerIpu, target.numTiles) == (2, 4, 8)
    assert (target.bytesPerTile, target.bytesPerIPU) == (1000, 4000)
    assert (target.totalMemory, target.memoryPerReplica) == (8000, 8000)
    assert (target.numReplicas, target.ipusPerReplica) == (1, 2)
    assert target.clockFrequency == 1_000_000_000
    assert target.architecture is pva.IPU.Architecture.Ipu2
    assert target.type is pva.Target.Type.IpuModel


def test_versions_and_settings(report: pva.Report) -> None:
    assert report.poplarVersion.string == "0.1"
    assert (report.version.major, report.version.minor) == (3, 8)
    assert not report.version.isUnstableFormat
    settings = report.instrumentationSettings
    assert settings.compute is settings.ComputeInstrumentationLevel.Tile
    levels = settings.ExternalExchangeInstrumentationLevel
    assert settings.externalExchange is levels.Tile


def test_memory_of_tiles(report: pva.Report) -> None:
    tiles = report.compilation.tiles
    assert [tile.memory.total.excludingGaps for tile in tiles] == [300] * 4 + [500] * 4
    last = tiles[7].memory
    assert last.total.includingGaps == 640
    assert (last.alwaysLiveBytes, last.notAlwaysLiveBytes) == (200, 300)
    assert last.overflowed == (0, 0)
    assert last.nonInterleaved.excludingGaps == 500
    assert report.compilation.ipus[1].tiles == tiles[4:]


def test_categories(report: pva.Report) -> None:
    category = report.compilation.tiles[5].memory.category
    assert category.vertexCode.total == 80
    # 350 bytes of its own and 90 it shares with others
    assert category.variable.nonInterleaved == (350, 90)
    assert category.variable.total == 440
    assert category.controlCode.total == 0
    assert "hostExchangeCode" in dir(category)
    with pytest.raises(AttributeError, match=r"no category 'vertexcode'.*vertexCode"):
        _ = category.vertexcode


def test_vertices_of_a_tile(report: pva.Report) -> None:
    (dot,) = report.compilation.tiles[0].memory.vertices
    assert (dot.type.name, dot.type.size, dot.type.source) == ("poplin::Dot", 12, "asm")
    assert (dot.codeBytes, dot.vertexDataBytes, dot.edgePtrBytes) == (80, 4, 2)


def test_compute_sets(report: pva.Report) -> None:
    (dense,) = report.compilation.computeSets
    assert dense.name == "dense/forward"
    counts = {each.type.name: each.countByTile for each in dense.vertices}
    assert counts == {"Fill": [1] * 8, "poplin::Dot": [2, 2, 0, 0, 0, 0, 0, 0]}
    assert [each.count for each in dense.vertices] == [8, 4]
    assert dense.estimatedCyclesByTile == [90] * 8
    assert dense.cyclesByTile == [100, 100, 100, 60, 80, 80, 80, 80]


def test_liveness_steps(report: pva.Report) -> None:
    steps = report.compilation.livenessProgramSteps
    # Changes: chip 0 +400 at 1, -400 at 3; chip 1 +700 at 2, +100 at 4, -800 at 5.
    found = [step.notAlwaysLiveMemory.bytes for step in steps]
    assert found == [0, 400, 1100, 700, 800, 0, 0, 0]
    third = steps[2]
    assert third.program.name == "gather"
    names = [each.name for each in third.notAlwaysLiveMemory.variables]
    assert names == ["act0", "act1"]
    second_chip = third.notAlwaysLiveMemoryForIpu(1)
    assert second_chip.bytes == 700
    assert [each.name for each in second_chip.variables] == ["act1"]


def test_always_live_variables(report: pva.Report) -> None:
    found = report.compilation.alwaysLiveVariables
    assert [(v.name, v.size) for v in found] == [("weights0", 800), ("weights1", 900)]
    (here,) = report.compilation.alwaysLiveVariablesForTile(3)
    assert (here.name, here.size) == ("weights0", 200)
    assert here == found[0]
    assert len({here, *found}) == 2
    assert report.compilation.alwaysLiveVariablesForTile(4) == []


def test_lowered_variables(report: pva.Report) -> None:
    lowered = report.compilation.loweredVariables
    whole, loose = lowered.forTile(0)
    assert lowered.allBriefVars == [whole, loose]
    assert lowered.forTile(1) == []
    assert (whole.id, whole.bytes, whole.tileId) == (0, 200, 0)
    assert whole.equivalenceClass is not None
    assert (whole.equivalenceClass.id, whole.equivalenceClass.steps) == (1, [])
    assert whole.hasUnloweredVar
    assert whole.unloweredVar in report.compilation.alwaysLiveVariables
    assert not loose.hasUnloweredVar
