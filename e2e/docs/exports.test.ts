/** Each package's README says what it is, how to install it, what it exports. `OPT_WRITE_DOCS=1` writes the tables anew. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { exportSection, publishedPackages, readExports, withSection } from "./exports";

const packages = publishedPackages();
const { exported, hidden } = readExports(packages.flatMap(({ entries }) => entries));

it("every type in a public signature is exported", () => expect(hidden).toEqual([]));

describe.each(packages)("$name", (each) => {
  const readme = readFileSync(each.readme, "utf8");
  // Its table would be those of all optimizers again.
  const written = each.name === "@opt/optim" ? readme : withSection(readme, exportSection(each, exported));
  if (process.env.OPT_WRITE_DOCS) writeFileSync(each.readme, written);

  it("opens with its name and what it is", () => expect(readme).toMatch(new RegExp(`^# ${each.name}\\n\\n[A-Z]`)));

  it("has an install line that brings all that its examples import", () => {
    const lines = [...readme.matchAll(/^npm (?:i|install) (.*)$/gm)].flatMap(([, names]) => names!.split(/\s+/));
    expect(lines).toContain(each.name);
    const blocks = [...readme.matchAll(/^```(?:js|ts)\n([\s\S]*?)^```$/gm)].map(([, code]) => code!);
    expect(blocks.length).toBeGreaterThan(0);
    const imported = blocks.flatMap((code) => [...code.matchAll(/(?:from|^import) "(@opt\/[\w-]+)/gm)]);
    for (const [, name] of imported) expect(lines).toContain(name);
  });

  it("lists what it exports (OPT_WRITE_DOCS=1 writes it)", () => {
    expect(process.env.OPT_WRITE_DOCS ? written : readme).toBe(written);
  });

  it.each(each.entries)("every value of $name says what it is", ({ name }) => {
    const silent = exported.get(name)!.filter(({ kind, sentence }) => kind === "value" && sentence === "");
    expect(silent.map((value) => value.name)).toEqual([]);
  });
});
