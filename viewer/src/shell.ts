/**
 * The frame around the views: header, tabs, and which view is shown.
 *
 * The address bar is the only state: `#memory?chip=1` is a view and its parameters.
 * A view is mounted when it is opened and disposed of when it is left; what it
 * remembered is found again in its last address.
 */

import type { ViewData } from "./data";
import { h } from "./element";
import { formatCount, formatHertz, plural } from "./format";
import { viewAddress, type Dispose, type View, type ViewId } from "./view";

export class Shell {
  private readonly main = h("main", { id: "view", tabindex: "-1" });
  private readonly tabs = new Map<ViewId, HTMLAnchorElement>();
  private readonly lastParams = new Map<ViewId, URLSearchParams>();
  private address = "";
  private dispose: Dispose = () => undefined;

  constructor(
    root: HTMLElement,
    private readonly data: ViewData,
    private readonly views: readonly View[],
  ) {
    document.title = `${data.title} · Popple`;
    root.replaceChildren(pageHeader(data, this.tabBar()), this.main, pageFooter(data));
    window.addEventListener("hashchange", () => this.follow());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      this.mount(),
    );
    this.follow();
  }

  /** Opens the view the address bar names, the first view when it names none. */
  private follow(): void {
    if (this.address !== "" && location.hash === this.address) return;
    this.mount();
    window.scrollTo(0, 0);
  }

  private mount(): void {
    const [view, params] = this.parse(location.hash);
    this.address = viewAddress(view.id, params);
    this.lastParams.set(view.id, params);
    this.dispose();
    this.markTab(view.id);
    const host = h("div", {
      class: "view",
      id: `panel-${view.id}`,
      role: "tabpanel",
      "aria-label": view.title,
      "data-view": view.id,
    });
    this.main.replaceChildren(host);
    this.dispose = this.fill(host, view, params);
  }

  private fill(host: HTMLElement, view: View, params: URLSearchParams): Dispose {
    const reason = view.emptyReason(this.data);
    if (reason !== null) {
      host.append(h("p", { class: "empty" }, reason));
      return () => undefined;
    }
    const remember = (changes: Readonly<Record<string, string>>): void =>
      this.remember(view.id, params, changes);
    return view.mount(host, { data: this.data, params, remember });
  }

  private remember(
    view: ViewId,
    params: URLSearchParams,
    changes: Readonly<Record<string, string>>,
  ): void {
    for (const [name, value] of Object.entries(changes)) {
      if (value === "") params.delete(name);
      else params.set(name, value);
    }
    this.address = viewAddress(view, params);
    this.tabs.get(view)?.setAttribute("href", this.address);
    history.replaceState(null, "", this.address);
  }

  private parse(hash: string): [View, URLSearchParams] {
    const [name, query] = hash.replace(/^#/, "").split("?", 2);
    const first = this.views[0] as View;
    const view = this.views.find((candidate) => candidate.id === name) ?? first;
    return [view, new URLSearchParams(query ?? "")];
  }

  private markTab(id: ViewId): void {
    for (const [view, tab] of this.tabs) {
      tab.setAttribute("aria-selected", String(view === id));
      tab.tabIndex = view === id ? 0 : -1;
      tab.href = viewAddress(view, this.lastParams.get(view) ?? new URLSearchParams());
    }
  }

  /** Tabs of all views; a timeline is listed only where there is one. */
  private tabBar(): HTMLElement {
    const listed = this.views.filter(
      (view) => view.id !== "timeline" || view.emptyReason(this.data) === null,
    );
    for (const view of listed) {
      const tab = h(
        "a",
        {
          class: "tab",
          role: "tab",
          href: `#${view.id}`,
          "data-tab": view.id,
          "aria-controls": `panel-${view.id}`,
        },
        view.title,
      );
      this.tabs.set(view.id, tab);
    }
    const keydown = (event: Event): void => this.moveTab(event as KeyboardEvent);
    const attributes = {
      class: "tabs",
      role: "tablist",
      "aria-label": "Views",
      on: { keydown },
    };
    return h("nav", attributes, ...this.tabs.values());
  }

  private moveTab(event: KeyboardEvent): void {
    const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const tabs = [...this.tabs.values()];
    const current = tabs.findIndex((tab) => tab === document.activeElement);
    const next = tabs[(current + move + tabs.length) % tabs.length];
    next?.focus();
    next?.click();
  }
}

function pageHeader(data: ViewData, tabs: HTMLElement): HTMLElement {
  const origin = data.modelled ? "Modelled" : "Measured";
  const meaning = data.modelled
    ? "The figures come from Popple's model of the machine, not from hardware."
    : "The figures were recorded on hardware.";
  return h(
    "header",
    { class: "page-head" },
    h(
      "div",
      { class: "masthead" },
      h("span", { class: "brand", "aria-label": "Popple" }, mark(), "popple"),
      h("h1", { title: data.title }, data.title),
      h("span", { class: "target" }, targetText(data)),
      h("span", { class: "badge", title: meaning }, origin),
    ),
    tabs,
  );
}

/** The mark of the page: three columns, like poplars, like a bar chart. */
function mark(): HTMLElement {
  return h("span", { class: "mark", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
}

function targetText(data: ViewData): string {
  const { name, num_chips, tiles_per_chip, clock_hz } = data.target;
  const chips = `${plural(num_chips, "IPU")} × ${formatCount(tiles_per_chip)} tiles`;
  return [name, chips, clock_hz > 0 ? formatHertz(clock_hz) : ""]
    .filter(Boolean)
    .join(" · ");
}

function pageFooter(data: ViewData): HTMLElement {
  return h("footer", { class: "page-foot" }, `Written by ${data.generator}`);
}
