/** The rules of every algorithm package of the workspace: kernel builds and device tests find them, and name no algorithm. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Rule } from "@opt/core";

/** An algorithm package and what it exports at `./rules`, each computation once. */
export interface AlgorithmRules {
  readonly name: string;
  readonly version: string;
  readonly rules: readonly Rule[];
}

const packages = new URL("../../", import.meta.url);

/** Every public package that has the entry `./rules`, by name. */
export async function algorithmRules(): Promise<AlgorithmRules[]> {
  const manifests = readdirSync(packages)
    .sort()
    .map((folder) => new URL(`${folder}/package.json`, packages))
    .filter((file) => existsSync(file))
    .map((file) => JSON.parse(readFileSync(file, "utf8")))
    .filter((manifest) => !manifest.private && manifest.exports?.["./rules"]);
  return Promise.all(
    manifests.map(async ({ name, version }) => {
      const entry: object = await import(/* @vite-ignore */ `${name}/rules`);
      const rules = (Object.values(entry) as unknown[]).filter((value) => Array.isArray(value)).flat() as Rule[];
      return { name, version, rules: [...new Map(rules.map((rule) => [rule.hash, rule])).values()] };
    }),
  );
}

/** All of their rules. */
export async function workspaceRules(): Promise<Rule[]> {
  return (await algorithmRules()).flatMap(({ rules }) => rules);
}
