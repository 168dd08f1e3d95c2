/** The panel beside the table of operations: all that is known about one of them. */

import type { Operation } from "../data";
import { h } from "../element";
import {
  formatBytes,
  formatCompact,
  formatCount,
  formatDuration,
  formatShare,
} from "../format";
import { phaseVariable } from "../theme";
import { filled, swatch } from "../widgets/controls";

/** What a superstep is made of, and the colour of each part. */
const PARTS = [
  { key: "compute_cycles", label: "Compute", color: "--part-compute" },
  { key: "exchange_cycles", label: "Exchange", color: "--part-exchange" },
  { key: "link_cycles", label: "Links", color: "--part-links" },
  { key: "host_cycles", label: "Host", color: "--part-host" },
  { key: "sync_cycles", label: "Sync", color: "--part-sync" },
] as const;

export function operationDetail(
  operation: Operation | null,
  clockHz: number,
): HTMLElement {
  if (operation === null) {
    return h(
      "p",
      { class: "quiet" },
      "Select an operation to see what it costs and why.",
    );
  }
  return h(
    "div",
    {},
    h("h2", { class: "detail-name" }, operation.name),
    h("p", { class: "tags" }, ...tags(operation)),
    h(
      "p",
      { class: "detail-cycles" },
      h("b", {}, formatCount(operation.cycles)),
      " cycles",
    ),
    h("p", { class: "quiet" }, costSentence(operation, clockHz)),
    ...split(operation),
    h("dl", { class: "facts" }, ...definitions(facts(operation))),
    ...plan(operation),
    ...source(operation),
  );
}

function tags({ phase, family, chip, stage }: Operation): HTMLElement[] {
  const texts = [
    family,
    chip === null ? "" : `IPU ${chip}`,
    stage === null ? "" : `stage ${stage}`,
  ];
  return [
    ...(phase
      ? [h("span", { class: "tag" }, swatch(phaseVariable(phase)), phase)]
      : []),
    ...texts.filter(Boolean).map((text) => h("span", { class: "tag" }, text)),
  ];
}

function costSentence(
  { cycles, share, executions }: Operation,
  clockHz: number,
): string {
  const parts = [
    `${formatShare(share)} of all cycles`,
    formatDuration(cycles, clockHz),
  ];
  if (executions !== 1) parts.push(`run ${formatCount(executions)} times`);
  return parts.filter(Boolean).join(" · ");
}

/** The classes of cycles as one bar and as numbers, where they are known. */
function split(operation: Operation): HTMLElement[] {
  const whole = PARTS.reduce((total, { key }) => total + operation[key], 0);
  if (whole === 0) return [];
  const parts = PARTS.filter(({ key }) => operation[key] > 0);
  const pieces = parts.map(({ key, color }) => filled(operation[key] / whole, color));
  const rows = parts.map(({ key, label, color }) =>
    h(
      "div",
      { class: "split-row" },
      swatch(color),
      h("span", { class: "name" }, label),
      h("span", { class: "number" }, formatCount(operation[key])),
      h("span", { class: "number quiet" }, formatShare(operation[key] / whole)),
    ),
  );
  const bar = h("div", { class: "split-bar" }, ...pieces);
  return [h("div", { class: "split" }, bar, ...rows)];
}

function facts(operation: Operation): [string, string][] {
  const { kind, remark, bound_by, limited_by, flops, cycles, bytes, rule } = operation;
  return [
    ["Operation", kind],
    ["What for", remark],
    ["Bound by", bound_by],
    ["Limited by", limited_by],
    ["Cost rule", rule],
    ["FLOPs", flops > 0 ? formatCompact(flops) : ""],
    ["FLOPs per cycle", flops > 0 && cycles > 0 ? formatCompact(flops / cycles) : ""],
    ["Memory", bytes > 0 ? formatBytes(bytes) : ""],
  ];
}

function definitions(rows: readonly (readonly [string, string])[]): HTMLElement[] {
  return rows
    .filter(([, value]) => value !== "")
    .flatMap(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]);
}

/** The plan that was chosen and those that were not; one can fold them away. */
function plan({ plan: { how, choice, runners_up } }: Operation): HTMLElement[] {
  if (how === "" && choice.length === 0) return [];
  const chosen = choice.map(([key, text]) => [key.replaceAll("_", " "), text] as const);
  const others = runners_up.map(([text, cycles]) =>
    h("li", {}, `${formatCount(cycles)} cycles: ${text}`),
  );
  return [
    h(
      "details",
      { class: "plan", open: true },
      h("summary", {}, "Plan"),
      h("p", { class: "quiet" }, how),
      h("dl", { class: "facts" }, ...definitions(chosen)),
      others.length > 0 && h("p", { class: "quiet" }, "Not taken, by estimate"),
      h("ul", {}, ...others),
    ),
  ];
}

function source({ module, line }: Operation): HTMLElement[] {
  const texts: [string, string][] = [
    ["Module", module],
    ["Source", line],
  ];
  return texts
    .filter(([, text]) => text)
    .map(([label, text]) =>
      h(
        "div",
        { class: "source" },
        h("span", { class: "quiet" }, label),
        h("code", { class: "mono" }, text),
      ),
    );
}
