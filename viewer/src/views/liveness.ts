/**
 * Liveness: memory of one chip over the steps of the program, and what lives at the
 * peak. In: always-live bytes, transient bytes a step, and the variables at each peak.
 */

import type { ChipLiveness, Liveness, Peak, Variable, ViewData } from "../data";
import { h } from "../element";
import { formatBytes, formatCount, formatShare } from "../format";
import { argMax } from "../tiles";
import type { View, ViewContext } from "../view";
import { Chart, type ChartSpec, type Counter } from "../widgets/chart";
import {
  bar,
  card,
  chipChoices,
  labelled,
  picker,
  segmented,
  swatch,
} from "../widgets/controls";
import { capacityLine, isNearCapacity } from "./capacity";

const CHART_HEIGHT = 320;

export const liveness: View = {
  id: "liveness",
  title: "Liveness",
  emptyReason: ({ liveness: { steps, chips } }) =>
    steps.length === 0 || chips.length === 0
      ? "This report holds no liveness: no program step says what memory it needs."
      : null,
  mount(host, context) {
    const view = new LivenessView(host, context);
    return () => view.dispose();
  },
};

/** The chip whose memory peaks highest, which is the one to look at first. */
function fullestChip(chips: readonly ChipLiveness[]): ChipLiveness {
  const peaks = chips.map((chip) => peakBytes(chip));
  return chips[argMax(peaks)] as ChipLiveness;
}

function peakBytes({ always_live_bytes, transient_bytes }: ChipLiveness): number {
  return always_live_bytes + (transient_bytes[argMax(transient_bytes)] ?? 0);
}

/** The recorded peak of a chip, the highest if there are several. */
function peakOf({ peaks }: Liveness, chip: number): Peak | null {
  const own = peaks.filter((peak) => peak.chip === chip);
  return own[argMax(own.map((peak) => peak.bytes))] ?? null;
}

class LivenessView {
  private readonly data: ViewData;
  private readonly chart: Chart;
  private readonly tables = h("div", { class: "columns even" });
  private readonly figures = h("div", { class: "figures" });

  constructor(
    host: HTMLElement,
    private readonly context: ViewContext,
  ) {
    this.data = context.data;
    const chartHost = h("div", { class: "chart" });
    const hint = h("span", { class: "hint" }, "Drag to zoom, double-click to reset");
    host.append(
      this.toolbar(),
      card("Memory by program step", hint, this.figures, chartHost),
      this.tables,
    );
    this.chart = new Chart(chartHost);
    this.refresh();
  }

  dispose(): void {
    this.chart.dispose();
  }

  private get chip(): ChipLiveness {
    const { chips } = this.data.liveness;
    const wanted = this.context.params.get("chip");
    return chips.find(({ chip }) => String(chip) === wanted) ?? fullestChip(chips);
  }

  private get withAlwaysLive(): boolean {
    return this.context.params.get("base") !== "none";
  }

  private toolbar(): HTMLElement {
    const { chips } = this.data.liveness;
    const choices = chipChoices(chips.map(({ chip }) => chip));
    const bases = [
      { value: "", label: "Included" },
      { value: "none", label: "Left out" },
    ];
    const base = this.withAlwaysLive ? "" : "none";
    return h(
      "div",
      { class: "toolbar" },
      chips.length > 1 &&
        labelled(
          "IPU",
          picker("IPU", choices, String(this.chip.chip), (chip) =>
            this.remember({ chip }),
          ),
        ),
      labelled(
        "Always live",
        segmented("Always live", bases, base, (value) =>
          this.remember({ base: value }),
        ),
      ),
    );
  }

  private remember(changes: Record<string, string>): void {
    this.context.remember(changes);
    this.refresh();
  }

  private refresh(): void {
    const chip = this.chip;
    const peak = peakOf(this.data.liveness, chip.chip);
    this.chart.show(this.chartOf(chip, peak));
    this.figures.replaceChildren(...this.figuresOf(chip));
    this.tables.replaceChildren(this.peakCard(chip, peak), this.alwaysLiveCard(chip));
  }

  private figuresOf(chip: ChipLiveness): HTMLElement[] {
    const capacity = this.capacityBytes;
    const transient = peakBytes(chip) - chip.always_live_bytes;
    return [
      figure("Always live", formatBytes(chip.always_live_bytes), "--series-always"),
      figure("Transient at the peak", formatBytes(transient), "--series-transient"),
      figure("Peak", formatBytes(peakBytes(chip)), null),
      figure("IPU memory", formatBytes(capacity), null),
      figure(
        "Peak of IPU memory",
        formatShare(peakBytes(chip) / Math.max(1, capacity)),
        null,
      ),
    ];
  }

  private chartOf(chip: ChipLiveness, peak: Peak | null): ChartSpec {
    const base = this.withAlwaysLive ? chip.always_live_bytes : 0;
    const index = peak?.step_index ?? argMax(chip.transient_bytes);
    const value = base + (chip.transient_bytes[index] ?? 0);
    return {
      height: CHART_HEIGHT,
      positions: Array.from(chip.transient_bytes, (_, step) => step),
      counters: this.counters(chip, base),
      stacked: true,
      xLabel: "Program step",
      formatX: formatCount,
      formatY: formatBytes,
      titleAt: (step) =>
        `${formatCount(step)} · ${this.data.liveness.steps[step] ?? "step"}`,
      marker: {
        index,
        value,
        text: `Peak ${formatBytes(value)} at step ${formatCount(index)}`,
      },
    };
  }

  private counters(chip: ChipLiveness, base: number): Counter[] {
    const transient: Counter = {
      label: "Transient",
      values: chip.transient_bytes.map((bytes) => base + bytes),
      shown: chip.transient_bytes,
      color: "--series-transient",
      fill: 0.42,
      width: 1.25,
    };
    const always: Counter = {
      label: "Always live",
      values: new Float64Array(chip.transient_bytes.length).fill(base),
      color: "--series-always",
      fill: 0.42,
      width: 1.25,
    };
    if (!this.withAlwaysLive) return [transient];
    const near = isNearCapacity(peakBytes(chip), this.capacityBytes);
    const line = capacityLine(chip.transient_bytes.length, this.capacityBytes);
    return [transient, always, ...(near ? [line] : [])];
  }

  private get capacityBytes(): number {
    const { bytes_per_tile, tiles_per_chip } = this.data.target;
    return bytes_per_tile * tiles_per_chip;
  }

  private peakCard(chip: ChipLiveness, peak: Peak | null): HTMLElement {
    const heading = "Largest variables at the peak";
    if (!peak || peak.variables.length === 0) {
      return card(
        heading,
        null,
        sentence(`No variable was recorded at the peak of IPU ${chip.chip}.`),
      );
    }
    const name = this.data.liveness.steps[peak.step_index] ?? "";
    const scope = h(
      "p",
      { class: "scope" },
      h("b", {}, `Step ${formatCount(peak.step_index)}`),
      h("span", { class: "quiet mono ellipsis", title: name }, name),
    );
    return card(
      heading,
      null,
      scope,
      variableTable(peak.variables, "--series-transient"),
    );
  }

  private alwaysLiveCard({ chip }: ChipLiveness): HTMLElement {
    const heading = "Largest always-live variables";
    const all = this.data.liveness.always_live_variables;
    const own = all.filter((variable) => [chip, null].includes(variable.chip));
    if (own.length === 0) {
      const text = `None of the largest always-live variables lies on IPU ${chip}.`;
      return card(heading, null, sentence(text));
    }
    return card(heading, null, variableTable(own, "--series-always"));
  }
}

function figure(label: string, value: string, color: string | null): HTMLElement {
  const mark = color === null ? null : swatch(color);
  return h(
    "div",
    { class: "figure" },
    h("span", { class: "figure-label" }, mark, label),
    h("b", {}, value),
  );
}

function sentence(text: string): HTMLElement {
  return h("p", { class: "quiet" }, text);
}

/** Variables, the largest first, with a bar each. */
function variableTable(variables: readonly Variable[], color: string): HTMLElement {
  const sorted = [...variables].sort((a, b) => b.bytes - a.bytes);
  const largest = Math.max(1, sorted[0]?.bytes ?? 0);
  const rows = sorted.map(({ name, bytes }) => {
    return h(
      "div",
      { class: "variable-row" },
      h("span", { class: "name mono ellipsis", title: name }, name),
      bar(bytes / largest, color),
      h("span", { class: "number" }, formatBytes(bytes)),
    );
  });
  return h("div", { class: "variables" }, ...rows);
}
