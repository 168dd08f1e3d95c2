/**
 * The data contract: what `popple.report.view_data` writes and every view reads.
 *
 * In: the JSON inside the page, or `data.json` from the local server. Out: a typed,
 * checked `ViewData`. Nothing else in the viewer touches raw JSON.
 */

/** Run-length coded values over all tiles: `count` tiles with `value` each. */
export type Runs = readonly (readonly [count: number, value: number])[];

export interface SummaryGroup {
  readonly group: string;
  readonly rows: readonly (readonly [label: string, value: string])[];
}

export interface Target {
  readonly name: string;
  readonly num_chips: number;
  readonly tiles_per_chip: number;
  readonly num_tiles: number;
  readonly bytes_per_tile: number;
  readonly clock_hz: number;
}

export type SeriesName =
  "total" | "total_including_gaps" | "always_live" | "transient_peak";

export interface Memory {
  readonly series: Readonly<Record<SeriesName, Runs>>;
  readonly categories: Readonly<Record<string, Runs>>;
  readonly capacity_bytes: number;
}

export interface Variable {
  readonly name: string;
  readonly bytes: number;
}

export interface ChipLiveness {
  readonly chip: number;
  readonly always_live_bytes: number;
  readonly transient_bytes: readonly number[];
}

export interface Peak {
  readonly chip: number;
  readonly step_index: number;
  readonly bytes: number;
  readonly variables: readonly Variable[];
}

export interface Liveness {
  readonly steps: readonly string[];
  readonly chips: readonly ChipLiveness[];
  readonly peaks: readonly Peak[];
  /** The largest ones; `chip` is null for a variable that lies on all chips. */
  readonly always_live_variables: readonly (Variable & {
    readonly chip: number | null;
  })[];
}

/** How an operation is done: in a sentence, by key, and plans not taken with cycles. */
export interface OperationPlan {
  readonly how: string;
  readonly choice: readonly (readonly [key: string, text: string])[];
  readonly runners_up: readonly (readonly [text: string, cycles: number])[];
}

export interface Operation {
  readonly name: string;
  readonly kind: string;
  readonly family: string;
  readonly phase: string;
  readonly chip: number | null;
  readonly stage: number | null;
  readonly module: string;
  /** The user's line, as `file.py:12`; empty where unknown. */
  readonly line: string;
  readonly cycles: number;
  readonly share: number;
  readonly compute_cycles: number;
  /** Within the chip; traffic that leaves it is in the next two. */
  readonly exchange_cycles: number;
  readonly link_cycles: number;
  readonly host_cycles: number;
  readonly sync_cycles: number;
  readonly flops: number;
  readonly bound_by: string;
  /** What kept the planner from a faster plan; empty if nothing did. */
  readonly limited_by: string;
  /** What the operation is there for, where its kind does not say it. */
  readonly remark: string;
  readonly executions: number;
  readonly rule: string;
  readonly bytes: number;
  readonly temporary_bytes: number;
  readonly plan: OperationPlan;
}

/** One slice of the timeline; `start` and `end` count cycles. */
export interface Slice {
  readonly chip: number;
  readonly start: number;
  readonly end: number;
  readonly label: string;
  readonly phase: string;
  readonly stage: number | null;
  readonly micro_batch: number | null;
}

/** Estimated joules of one run of one replica; null where nothing was estimated. */
export interface Energy {
  readonly is_estimate: boolean;
  readonly idle_joules: number;
  readonly compute_joules: number;
  readonly exchange_joules: number;
  readonly mean_watts: number;
  readonly joules_per_sample: number | null;
}

export interface ViewData {
  readonly format: 2;
  readonly title: string;
  readonly generator: string;
  readonly modelled: boolean;
  readonly summary: readonly SummaryGroup[];
  readonly target: Target;
  readonly memory: Memory;
  readonly liveness: Liveness;
  readonly energy: Energy | null;
  readonly operations: readonly Operation[];
  /** Cycles of each chip by class, bubbles included; empty where not known. */
  readonly chip_times: readonly Readonly<Record<string, number>>[];
  readonly timeline: readonly Slice[];
  readonly notes: readonly string[];
}

export const FORMAT = 2;

/** The data cannot be shown; the message says why and what to do. */
export class DataError extends Error {}

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function checkObjects(value: Json, path: string, keys: readonly string[]): void {
  for (const key of keys) {
    if (!isObject(value[key])) {
      throw new DataError(`The report data has no object “${path}${key}”.`);
    }
  }
}

function checkArrays(value: Json, path: string, keys: readonly string[]): void {
  for (const key of keys) {
    if (!Array.isArray(value[key])) {
      throw new DataError(`The report data has no list “${path}${key}”.`);
    }
  }
}

/** Checks format and shape, down to the containers the views iterate over. */
export function parseViewData(value: unknown): ViewData {
  if (!isObject(value)) throw new DataError("This page holds no report data.");
  if (value["format"] !== FORMAT) {
    throw new DataError(
      `This viewer reads data format ${FORMAT}, the report has format ` +
        `${String(value["format"])}. Write the page again with one Popple version.`,
    );
  }
  checkObjects(value, "", ["target", "memory", "liveness"]);
  checkArrays(value, "", ["summary", "operations", "chip_times", "timeline", "notes"]);
  const memory = value["memory"] as Json;
  checkObjects(memory, "memory.", ["series", "categories"]);
  const names = ["total", "total_including_gaps", "always_live", "transient_peak"];
  checkArrays(memory["series"] as Json, "memory.series.", names);
  const lists = ["steps", "chips", "peaks", "always_live_variables"];
  checkArrays(value["liveness"] as Json, "liveness.", lists);
  return value as unknown as ViewData;
}

async function unzip(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes])
    .stream()
    .pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** Reads the data inside the page or, when it is served, from beside it. */
export async function loadViewData(page: Document): Promise<ViewData> {
  const block = page.getElementById("popple-data");
  const text = block?.textContent?.trim() ?? "null";
  if (block?.dataset["encoding"] === "gzip") {
    return parseViewData(JSON.parse(await unzip(text)));
  }
  if (text !== "null") return parseViewData(JSON.parse(text));
  if (page.location.protocol === "file:") return parseViewData(null);
  const response = await fetch("data.json");
  if (!response.ok) throw new DataError("The local server did not send the data.");
  return parseViewData(await response.json());
}
