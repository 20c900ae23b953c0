/**
 * The rules of released algorithms, kept in native/rules/released.json: kernels are built for the present rules and for these, so that an
 * algorithm of the last series still finds its kernel. `tsx tools/release/rules.ts` records the present ones; `npm run version` does.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Rule } from "@opt/core/backend";
import { packageRules } from "@opt/testkit/rules";
import { root } from "../run.mjs";
import { compare, parse, series } from "./semver.mjs";

export type ReleasedRule = Pick<Rule, "name" | "hash" | "buffers" | "scalars" | "writes" | "program">;

/** By package and series ("0.1"), the newest series last. */
export type ReleasedRules = Record<string, Record<string, ReleasedRule[]>>;

export interface Algorithm {
  readonly name: string;
  readonly version: string;
  readonly rules: readonly ReleasedRule[];
}

const FILE = join(root, "native/rules/released.json");

/** The packages with ahead-of-time kernels. */
export const KERNELS = ["@opt/kernels-cpu", "@opt/kernels-cuda"];

/** Every algorithm package of the workspace, its rules as plain data. */
export async function presentRules(): Promise<Algorithm[]> {
  return (await packageRules()).map(({ name, version, rules }) => ({
    name,
    version,
    rules: rules.map(({ name, hash, buffers, scalars, writes, program }) => {
      return { name, hash, buffers, scalars, writes, program };
    }),
  }));
}

export function releasedRules(): ReleasedRules {
  return parsed(readFileSync(FILE, "utf8"));
}

/** The record after a release: what each series has had, of the two newest series. */
export function recorded(released: ReleasedRules, present: readonly Algorithm[]): ReleasedRules {
  return Object.fromEntries(
    present.map(({ name, version, rules }) => {
      const all = { ...released[name] };
      const known = all[series(version)] ?? [];
      const added = rules.filter(({ hash }) => !known.some((rule) => rule.hash === hash));
      all[series(version)] = [...known, ...added];
      const full = (text: string) => parse([...text.split("."), "0", "0"].slice(0, 3).join("."));
      const newest = Object.keys(all).sort((a, b) => compare(full(a), full(b)));
      return [name, Object.fromEntries(newest.slice(-2).map((key) => [key, all[key]!]))];
    }),
  );
}

/** What is wrong: rules that no released kernel has, and no changeset that releases kernels. */
export function unannounced(
  released: ReleasedRules,
  present: readonly Algorithm[],
  changesets: readonly string[],
): string[] {
  const silent = KERNELS.filter((kernels) => !changesets.some((text) => text.includes(`"${kernels}":`)));
  return present.flatMap(({ name, rules }) => {
    const known = new Set(Object.values(released[name] ?? {}).flatMap((rules) => rules.map(({ hash }) => hash)));
    const changed = rules.filter(({ hash }) => !known.has(hash)).map((rule) => rule.name);
    if (changed.length === 0 || silent.length === 0) return [];
    return [
      `${name} has rules that no released kernel knows (${changed.join(", ")}): add a changeset for ${silent.join(", ")}`,
    ];
  });
}

/** What JSON has no number for is text there: an infinite constant must not come back as null. */
const asText = (key: string, value: unknown) =>
  key === "value" && typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))
    ? Object.is(value, -0)
      ? "-0"
      : String(value)
    : value;

/** The inverse of `written`; the generators of kernels read it in the same way. */
export const parsed = (text: string): ReleasedRules =>
  JSON.parse(text, (key, value) => (key === "value" ? Number(value) : value));

/** One rule a line. */
export function written(rules: ReleasedRules): string {
  const packages = Object.entries(rules).map(([name, all]) => {
    const rows = Object.entries(all).map(([key, list]) => {
      return `    "${key}": [\n${list.map((rule) => `      ${JSON.stringify(rule, asText)}`).join(",\n")}\n    ]`;
    });
    return `  "${name}": {\n${rows.join(",\n")}\n  }`;
  });
  return `{\n${packages.join(",\n")}\n}\n`;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const text = written(recorded(releasedRules(), await presentRules()));
  if (!existsSync(FILE) || readFileSync(FILE, "utf8") !== text) writeFileSync(FILE, text);
}
