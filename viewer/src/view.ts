/** What a view is: the contract between `shell.ts` and each file of `views/`. */

import type { ViewData } from "./data";

export type ViewId = "summary" | "memory" | "liveness" | "operations" | "timeline";

/** What a mounted view may use. */
export interface ViewContext {
  readonly data: ViewData;
  /** The view's state as the address bar has it, for instance `chip=1`. */
  readonly params: URLSearchParams;
  /** Remembers changed state in the address bar; an empty value forgets it. */
  remember(changes: Readonly<Record<string, string>>): void;
}

/** Stops whatever the view started (observers, listeners outside its host). */
export type Dispose = () => void;

export interface View {
  readonly id: ViewId;
  readonly title: string;
  /** The sentence to show instead when the report has nothing for this view. */
  emptyReason(data: ViewData): string | null;
  mount(host: HTMLElement, context: ViewContext): Dispose;
}

/** The address of a view: `#memory?chip=1`. */
export function viewAddress(view: ViewId, params: URLSearchParams): string {
  const query = params.toString();
  return query ? `#${view}?${query}` : `#${view}`;
}
