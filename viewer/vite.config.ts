/** Builds the viewer into one HTML file, inside the Python package. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";
import { sourceDigest } from "./digest.ts";

const ROOT = import.meta.dirname;

/** Fills in the digest of the sources and the licences of what is bundled. */
function provenance(): Plugin {
  const licence = readFileSync(join(ROOT, "node_modules/uplot/LICENSE"), "utf8");
  return {
    name: "provenance",
    transformIndexHtml: (html) =>
      html
        .replace("%DIGEST%", sourceDigest(ROOT))
        .replace("%LICENCES%", `This page contains uPlot.\n\n${licence.trim()}`),
  };
}

export default defineConfig({
  root: ROOT,
  plugins: [provenance(), viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    outDir: "../src/popple/viewer/static",
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
  },
});
