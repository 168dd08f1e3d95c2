/** Starts the viewer: loads the data, then lets the shell show the views. */

import { loadViewData } from "./data";
import { h } from "./element";
import { Shell } from "./shell";
import "./style/index.css";
import { liveness } from "./views/liveness";
import { memory } from "./views/memory";
import { operations } from "./views/operations";
import { summary } from "./views/summary";
import { timeline } from "./views/timeline";

const VIEWS = [summary, memory, liveness, operations, timeline];

async function start(root: HTMLElement): Promise<void> {
  try {
    new Shell(root, await loadViewData(document), VIEWS);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    root.replaceChildren(h("p", { class: "empty", role: "alert" }, reason));
  }
}

void start(document.getElementById("app") as HTMLElement);
