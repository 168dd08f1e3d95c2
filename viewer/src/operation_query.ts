/** Filtering and sorting of operations. In: all of them and a `Query`. Out: rows. */

import type { Operation } from "./data";

export type ColumnKey =
  "name" | "phase" | "family" | "chip" | "bound_by" | "cycles" | "share";

export interface Column {
  readonly key: ColumnKey;
  readonly label: string;
  /** As in `grid-template-columns`. */
  readonly width: string;
}

export const COLUMNS: readonly Column[] = [
  { key: "name", label: "Operation", width: "minmax(180px, 1fr)" },
  { key: "phase", label: "Phase", width: "112px" },
  { key: "family", label: "Family", width: "112px" },
  { key: "chip", label: "IPU", width: "52px" },
  { key: "bound_by", label: "Bound by", width: "96px" },
  { key: "cycles", label: "Cycles", width: "116px" },
  { key: "share", label: "Share", width: "minmax(130px, 0.5fr)" },
];

/** The columns in which some operation has an entry. */
export function filledColumns(operations: readonly Operation[]): Column[] {
  return COLUMNS.filter(({ key }) =>
    operations.some((operation) => operation[key] !== "" && operation[key] !== null),
  );
}

/** What to show; an empty text or filter lets everything pass. */
export interface Query {
  readonly text: string;
  readonly phase: string;
  readonly family: string;
  readonly chip: string;
  readonly sort: ColumnKey;
  readonly descending: boolean;
}

/** Whether a column sorts from large to small at first; texts begin with A. */
export function isLargestFirst(key: ColumnKey): boolean {
  return key === "cycles" || key === "share";
}

export function isColumn(key: string): key is ColumnKey {
  return COLUMNS.some((column) => column.key === key);
}

export function selectOperations(
  operations: readonly Operation[],
  query: Query,
): Operation[] {
  const words = query.text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = operations.filter((operation) => passes(operation, query, words));
  const sign = query.descending ? -1 : 1;
  return rows.sort((a, b) => sign * compare(a, b, query.sort));
}

function passes(operation: Operation, query: Query, words: readonly string[]): boolean {
  if (query.phase !== "" && operation.phase !== query.phase) return false;
  if (query.family !== "" && operation.family !== query.family) return false;
  if (query.chip !== "" && String(operation.chip ?? "") !== query.chip) return false;
  if (words.length === 0) return true;
  const { name, kind, module, line } = operation;
  const haystack = `${name} ${kind} ${module} ${line}`.toLowerCase();
  return words.every((word) => haystack.includes(word));
}

function compare(a: Operation, b: Operation, key: ColumnKey): number {
  const [left, right] = [a[key] ?? -1, b[key] ?? -1];
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left).localeCompare(String(right), "en", { numeric: true });
}
