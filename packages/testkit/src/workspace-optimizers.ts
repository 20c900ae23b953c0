/** Every optimizer of the workspace, found in `packages/optimizers`: suites and builds loop over them and name none. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { OptimizerClass, StagedOptimizer } from "@opt/core";
import { isOptimizerClass, type OptimizerOptions } from "./golden/optimizer";

// biome-ignore lint/suspicious/noExplicitAny: each class has options of its own
export type AnyOptimizer = OptimizerClass<any>;

/** A package and its entry. */
export interface OptimizerPackage {
  readonly name: string;
  readonly version: string;
  readonly entry: Readonly<Record<string, unknown>>;
  /** By class: options that together use all that the class has, the defaults first. Floats are exact in float32. None for a class that dense gradients cannot step. */
  readonly runs: Readonly<Record<string, readonly OptimizerOptions[]>>;
}

export interface WorkspaceOptimizer {
  /** Of the class. */
  readonly name: string;
  readonly Optimizer: AnyOptimizer;
  readonly runs: readonly OptimizerOptions[];
  /** False where a step is more than a rule of single elements, as Muon's. */
  readonly isElementwise: boolean;
}

const folder = new URL("../../optimizers/", import.meta.url);

/** Every optimizer's package, by name. */
export async function optimizerPackages(): Promise<OptimizerPackage[]> {
  const manifests = readdirSync(folder)
    .sort()
    .map((name) => new URL(`${name}/package.json`, folder))
    .filter((file) => existsSync(file))
    .map((file) => JSON.parse(readFileSync(file, "utf8")));
  return Promise.all(
    manifests.map(async ({ name, version, opt }) => {
      const entry: Record<string, unknown> = await import(/* @vite-ignore */ name);
      return { name, version, entry, runs: opt.optimizers };
    }),
  );
}

/** Every optimizer's class, by name. @throws Error for a class without runs in its package.json, and for runs without a class */
export async function workspaceOptimizers(): Promise<WorkspaceOptimizer[]> {
  const packages = await optimizerPackages();
  return packages.flatMap(({ name: from, entry, runs }) => {
    const classes = Object.keys(entry).filter((name) => isOptimizerClass(entry[name]));
    const [exported, listed] = [classes, Object.keys(runs)].map((names) => [...names].sort().join(", "));
    if (exported !== listed)
      throw new Error(`${from} exports ${exported}, and its package.json has runs of ${listed}.`);
    return classes.map((name) => {
      const Optimizer = entry[name] as AnyOptimizer;
      const { stages } = Optimizer.prototype as unknown as { stages?: StagedOptimizer<never>["stages"] };
      return { name, Optimizer, runs: runs[name]!, isElementwise: stages === undefined };
    });
  });
}

/** The same classes as an object, for `campaign` and other programs. */
export async function optimizerClasses(): Promise<Record<string, AnyOptimizer>> {
  return Object.fromEntries((await workspaceOptimizers()).map(({ name, Optimizer }) => [name, Optimizer]));
}

export interface OptimizerRun extends WorkspaceOptimizer {
  readonly title: string;
  readonly options: OptimizerOptions;
}

/** Every run of every optimizer, its options over those of `common`. */
export async function optimizerRuns(common: OptimizerOptions = {}): Promise<OptimizerRun[]> {
  return (await workspaceOptimizers()).flatMap((optimizer) =>
    optimizer.runs.map((own) => {
      const title = Object.keys(own).length === 0 ? optimizer.name : `${optimizer.name} ${JSON.stringify(own)}`;
      return { ...optimizer, title, options: { ...common, ...own } };
    }),
  );
}
