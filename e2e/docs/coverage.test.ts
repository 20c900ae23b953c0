/** The page of coverage says what the devices do. `OPT_WRITE_DOCS=1` writes it anew. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { init, listDevices } from "@opt/core";
import { useSoftwareVulkan } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { coverageOf, coverageTable } from "./coverage";

useSoftwareVulkan();
const PAGE = fileURLToPath(new URL("../../docs/guides/coverage.md", import.meta.url));
const DEVICES = ["js", "wasm", "cpu", "webgpu"] as const;

/** The table's cells by device and operation, as the page has them. */
function written(): Record<string, Record<string, string>> {
  const [header, , ...rows] = readFileSync(PAGE, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const columns = header!
    .slice(1)
    .map((name, i) => [name, Object.fromEntries(rows.map((row) => [row[0], row[i + 1]]))]);
  return Object.fromEntries(columns);
}

describe("coverage as the page has it", async () => {
  const listing = await listDevices();
  it.for(DEVICES)("on %s", async (name, { skip }) => {
    const { available, reason } = listing.find((device) => device.name === name)!;
    if (!available) skip(reason);
    expect(written()[name]).toEqual(await coverageOf(await init(name)));
  });
});

if (process.env.OPT_WRITE_DOCS) {
  const columns: Record<string, Record<string, string>> = {};
  for (const name of DEVICES) columns[name] = { ...(await coverageOf(await init(name))) };
  const page = readFileSync(PAGE, "utf8").replace(/(^\|.*\n)+/m, `${coverageTable(columns)}\n`);
  writeFileSync(PAGE, page);
}
