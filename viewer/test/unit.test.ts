/** Tests of the parts that need no browser. Run with `npm test`. */

import assert from "node:assert/strict";
import test from "node:test";
import { DataError, parseViewData } from "../src/data";
import type { Operation, Slice } from "../src/data";
import * as format from "../src/format";
import { selectOperations, type Query } from "../src/operation_query";
import { lowerBound, niceStep, TimeScale } from "../src/scale";
import { argMax, expandRuns, tileRange } from "../src/tiles";
import { buildTracks, findSlice, visitVisible, wholeSpan } from "../src/tracks";
import { gridColumns, layoutMap } from "../src/widgets/tile_map";

test("numbers are short and have their units", () => {
  assert.equal(format.formatBytes(638_976), "624 KiB");
  assert.equal(format.formatBytes(1023.99), "1.0 KiB");
  assert.equal(format.formatBytes(0), "0 B");
  assert.equal(format.formatCompact(1_234_567), "1.23 M");
  assert.equal(format.formatShare(0.0001), "<0.1 %");
  assert.equal(format.formatDuration(1_850, 1.85e9), "1.00 µs");
  assert.equal(format.formatDuration(1_850, 0), "");
  assert.equal(format.formatTick(370_000, 185_000, 1.85e9), "200 µs");
});

test("identifiers become labels", () => {
  assert.equal(format.formatLabel("vertexInstanceState"), "Vertex instance state");
  assert.equal(format.formatLabel("control_code"), "Control code");
});

test("a TimeScale turns time to pixels and back", () => {
  const scale = new TimeScale({ start: 100, end: 300 }, 50, 400);
  assert.equal(scale.toPixels(200), 250);
  assert.equal(scale.toTime(250), 200);
  assert.throws(() => scale.withSpan({ start: 1, end: 1 }), RangeError);
});

test("zooming keeps the time under the pointer, panning moves it along", () => {
  const scale = new TimeScale({ start: 0, end: 1000 }, 0, 500);
  const zoomed = scale.zoomed(4, 125);
  assert.equal(zoomed.duration, 250);
  assert.equal(zoomed.toTime(125), scale.toTime(125));
  assert.equal(zoomed.panned(40).toTime(165), zoomed.toTime(125));
});

test("a clamped scale stays inside its bounds", () => {
  const bounds = { start: 0, end: 1000 };
  const scale = new TimeScale({ start: 900, end: 1100 }, 0, 500);
  assert.deepEqual(scale.clamped(bounds, 10).span, { start: 800, end: 1000 });
  const wide = scale.withSpan({ start: -5000, end: 5000 });
  assert.deepEqual(wide.clamped(bounds, 10).span, bounds);
  const thin = scale.withSpan({ start: 500, end: 501 });
  assert.deepEqual(thin.clamped(bounds, 10).span, { start: 500, end: 510 });
});

test("ticks are round, far enough apart, and inside the span", () => {
  assert.deepEqual([0.9, 1, 1.1, 3, 51].map(niceStep), [1, 1, 2, 5, 100]);
  const scale = new TimeScale({ start: 130, end: 630 }, 0, 500);
  // 110 pixels are 110 cycles; the next round step is 200.
  const step = scale.tickStep(110, 1);
  assert.equal(step, 200);
  assert.deepEqual(scale.ticks(step), [200, 400, 600]);
});

test("runs open into one value a tile", () => {
  const runs = [
    [2, 5],
    [0, 9],
    [1, 7],
  ] as const;
  assert.deepEqual([...expandRuns(runs)], [5, 5, 7]);
});

test("a chip owns its tiles, no chip means all of them", () => {
  const target = {
    name: "",
    num_chips: 2,
    tiles_per_chip: 4,
    num_tiles: 8,
    bytes_per_tile: 1,
    clock_hz: 1,
  };
  assert.deepEqual(tileRange(target, 1), [4, 8]);
  assert.deepEqual(tileRange(target, null), [0, 8]);
});

test("the largest value is found, the first of equals", () => {
  assert.equal(argMax([1, 3, 3]), 1);
  assert.equal(argMax([]), -1);
  assert.equal(lowerBound([1, 3, 3, 5], 3), 1);
});

test("1472 tiles make a full grid, a prime number of tiles a ragged one", () => {
  assert.equal(1472 % gridColumns(1472), 0);
  const columns = gridColumns(1471);
  assert.ok(columns > 40 && columns < 90);
});

test("the tile map fits its width for any number of chips", () => {
  for (const chips of [1, 2, 4, 16]) {
    const { perRow, columns, cell } = layoutMap(800, chips, 1472);
    assert.ok(perRow * columns * cell + (perRow - 1) * 20 <= 800, `${chips} chips`);
  }
});

function slice(chip: number, start: number, end: number): Slice {
  return { chip, start, end, label: "", phase: "", stage: null, micro_batch: null };
}

test("slices that overlap stand in rows of their own", () => {
  const slices = [slice(1, 0, 10), slice(0, 5, 9), slice(1, 4, 6), slice(1, 6, 8)];
  const tracks = buildTracks(slices);
  assert.deepEqual(
    tracks.map(({ chip }) => chip),
    [0, 1],
  );
  const starts = tracks[1]?.rows.map((row) => [...row.starts]);
  assert.deepEqual(starts, [[0], [4, 6]]);
  assert.deepEqual(wholeSpan(slices), { start: 0, end: 10 });
});

test("a crowd of thin slices is drawn at most once a pixel", () => {
  const slices = Array.from({ length: 100_000 }, (_, i) => slice(0, i, i + 0.5));
  const row = buildTracks(slices)[0]?.rows[0];
  assert.ok(row);
  const scale = new TimeScale({ start: 0, end: 100_000 }, 0, 400);
  let drawn = 0;
  visitVisible(row, scale, () => (drawn += 1));
  assert.ok(drawn >= 395 && drawn <= 401, String(drawn));
  assert.equal(findSlice(row, 7.2, 0)?.start, 7);
  assert.equal(findSlice(row, 7.7, 0), null);
});

const QUERY: Query = {
  text: "",
  phase: "",
  family: "",
  chip: "",
  sort: "cycles",
  descending: true,
};

function operation(name: string, cycles: number, chip: number | null): Operation {
  return {
    name,
    kind: "aten.mm",
    family: "matmul",
    phase: "forward",
    chip,
    stage: null,
    module: "model.layer",
    line: "model.py:12",
    cycles,
    share: 0,
    compute_cycles: 0,
    exchange_cycles: 0,
    link_cycles: 0,
    host_cycles: 0,
    sync_cycles: 0,
    flops: 0,
    bound_by: "compute",
    limited_by: "",
    remark: "",
    executions: 1,
    rule: "matmul",
    bytes: 0,
    temporary_bytes: 0,
    plan: { how: "", choice: [], runners_up: [] },
  };
}

test("operations are filtered and sorted", () => {
  const all = [operation("b2", 1, 0), operation("a", 3, 1), operation("b10", 2, null)];
  const names = (query: Partial<Query>): string[] =>
    selectOperations(all, { ...QUERY, ...query }).map(({ name }) => name);
  assert.deepEqual(names({}), ["a", "b10", "b2"]);
  assert.deepEqual(names({ sort: "name", descending: false }), ["a", "b2", "b10"]);
  assert.deepEqual(names({ chip: "0" }), ["b2"]);
  assert.deepEqual(names({ text: "MODEL.py b1" }), ["b10"]);
  assert.deepEqual(names({ phase: "backward" }), []);
});

test("data of another format are refused by number", () => {
  assert.throws(() => parseViewData({ format: 7 }), /format 2, .* format 7/);
  assert.throws(() => parseViewData(null), DataError);
  assert.throws(() => parseViewData({ format: 2 }), /no object “target”/);
});
