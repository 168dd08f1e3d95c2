/**
 * A digest of everything the bundle is built from.
 *
 * In: the viewer's source files. Out: one hexadecimal SHA-256, written into the
 * bundle. `tests/viewer/test_bundle.py` computes the same digest without Node, so
 * a bundle that was not rebuilt after a change fails a test.
 */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const CONFIG_FILES = [
  "digest.ts",
  "index.html",
  "package-lock.json",
  "package.json",
  "tsconfig.json",
  "vite.config.ts",
];

/** Paths of all sources relative to `root`, with forward slashes, sorted. */
function sourcePaths(root: string): string[] {
  const entries = readdirSync(join(root, "src"), {
    recursive: true,
    withFileTypes: true,
  });
  const sources = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
  return [...CONFIG_FILES, ...sources.map((path) => path.replaceAll("\\", "/"))].sort();
}

/** The digest: for each file its path, a zero byte, its text, a zero byte. */
export function sourceDigest(root: string): string {
  const hash = createHash("sha256");
  for (const path of sourcePaths(root)) {
    // Line ends are made equal: a checkout may have changed them.
    const text = readFileSync(join(root, path), "utf8").replaceAll("\r\n", "\n");
    hash.update(`${path}\0${text}\0`);
  }
  return hash.digest("hex");
}
