/** The rules of core and of every optimizer: kernel builds and device tests find them, and name no algorithm. */
import { readFileSync } from "node:fs";
import type { Rule } from "@opt/core";
import { distinctByHash } from "@opt/core/backend";
import { isRuleList } from "./golden/optimizer";
import { optimizerPackages } from "./workspace-optimizers";

/** A package and what it exports at `./rules`, each computation once. */
export interface PackageRules {
  readonly name: string;
  readonly version: string;
  readonly rules: readonly Rule[];
}

/** The packages with rules, by name. */
export async function packageRules(): Promise<PackageRules[]> {
  const { name, version } = JSON.parse(readFileSync(new URL("../../core/package.json", import.meta.url), "utf8"));
  const core = { name, version, entry: await import("@opt/core/rules") };
  const packages = [core, ...(await optimizerPackages())].sort((a, b) => (a.name < b.name ? -1 : 1));
  return packages.map(({ name, version, entry }) => {
    const rules = Object.values(entry as Record<string, unknown>).filter(isRuleList);
    return { name, version, rules: distinctByHash(rules.flat()) };
  });
}

/** All of their rules. */
export async function workspaceRules(): Promise<Rule[]> {
  return (await packageRules()).flatMap(({ rules }) => rules);
}
