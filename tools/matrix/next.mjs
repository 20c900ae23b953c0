/** The row of Next: an app router's client component, built and exported as files, trains in headless Chromium. */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { start } from "../run.mjs";
import { openPage } from "./bundlers.mjs";

/** @type {Record<string, string>} */
const FILES = {
  "next.config.mjs": 'export default { output: "export", turbopack: { root: import.meta.dirname } };\n',
  "app/layout.jsx": 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;\n',
  "app/page.jsx": `"use client";
import { useEffect, useState } from "react";
import { train } from "../train.mjs";
export default function Page() {
  const [line, setLine] = useState("");
  useEffect(() => {
    train().then(setLine, (error) => setLine(String(error.stack)));
  }, []);
  useEffect(() => {
    if (line !== "") globalThis.line = line;
  }, [line]);
  return <p>{line}</p>;
}
`,
};

/**
 * @param {string} folder with the packages and the program
 * @param {string} scratch where the app may lie
 * @param {(where: string, packages: readonly string[]) => Promise<void>} install
 * @param {readonly string[]} tarballs
 * @returns {import("./runtimes.mjs").Row[]}
 */
export function nextRows(folder, scratch, install, tarballs) {
  return [
    {
      name: "Next 16, client component in Chromium",
      run: async () => {
        const app = join(scratch, "next");
        await install(app, ["next@16", "react@19", "react-dom@19", ...tarballs]);
        mkdirSync(join(app, "app"));
        for (const [name, text] of Object.entries(FILES)) writeFileSync(join(app, name), text);
        cpSync(join(folder, "train.mjs"), join(app, "train.mjs"));
        const env = { NEXT_TELEMETRY_DISABLED: "1", NODE_ENV: "production" };
        const next = join(app, "node_modules/next/dist/bin/next");
        const { ok, stdout, stderr } = await start(process.execPath, [next, "build"], { quiet: true, cwd: app, env });
        return ok ? openPage(join(app, "out")) : { line: `${stdout}${stderr}`.trim() };
      },
    },
  ];
}
