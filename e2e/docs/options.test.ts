/** Every option of every public function has a test in which it works. */
import { readFileSync } from "node:fs";
import * as core from "@opt/core";
import {
  adafactorGoldens,
  argumentsOf,
  definitionsIn,
  muonGoldens,
  operandsOf,
  readPackageGoldens,
  torchGoldens,
} from "@opt/testkit";
import { type WorkspaceOptimizer, workspaceOptimizers } from "@opt/testkit/optimizers";
import { expect, it } from "vitest";
import { publishedPackages } from "./exports";
import { readUses } from "./option-uses";
import { programOf, readCallees } from "./options";

/** What `npm test` runs, and what that is made of. */
const isTest = (file: string) =>
  /\.test\.ts$|\/testing\/|\/testkit\/src\/|\/e2e\//.test(file) &&
  !/\/node_modules\/|\.full\.test\.ts$|\/e2e\/(docs|install|release)\//.test(file);

/** Interfaces that users implement: our code calls their methods, and the tests of it are those of the option that takes them. */
const CALLED_BY_US = new Set([
  "SourceBox.read",
  "OpenFile.read",
  "StoredFile.read",
  "PickedFolder.getDirectoryHandle",
  "FitSchedule.step",
  "Weights.loadStateDict",
]);

/** Options of every optimizer, which group-options.test.ts and modifications.test.ts of @opt/optim give to each class that they find. */
const OF_EVERY_OPTIMIZER = [
  ...["lr", "maximize", "clip", "regularizer", "stateDType", "lazyMode", "stochasticRounding"],
  ...["cautious", "decay", "mars", "hyperball", "centralize"],
];

/** Modifications that look at whole tensors: steps of single elements throw UNSUPPORTED, see modifications.test.ts. */
const OF_WHOLES = ["cautious", "mars", "hyperball", "centralize"];

/** Options of a shared type that these functions throw UNSUPPORTED for, or that change nothing where they are: by what tests say so. */
const WITHOUT_EFFECT: Readonly<Record<string, readonly string[]>> = {
  // functional.test.ts and lazy-mode.test.ts; parameters are float32 or float64, which are not rounded.
  "@opt/core: functional": ["lazyMode", "stochasticRounding", ...OF_WHOLES],
  "Functional.update": ["lazyMode", "stochasticRounding", ...OF_WHOLES],
  // rule-steps.test.ts
  "@opt/core/backend: ruleSteps": ["lazyMode", "stateDType", "stochasticRounding", ...OF_WHOLES],
  "RuleSteps.next": ["lazyMode", "stateDType", "stochasticRounding", ...OF_WHOLES],
  // errors.test.ts of jax-js
  "@opt/jax-js: gradientTransformation": ["lazyMode", "stateDType", "stochasticRounding", ...OF_WHOLES],
  "GradientTransformation.update": ["lazyMode", "stateDType", "stochasticRounding", ...OF_WHOLES],
  "GradientTransformation.step": ["lazyMode", "stateDType", "stochasticRounding", ...OF_WHOLES],
  // sharded-optimizer.test.ts
  "@opt/parallel: new ShardedOptimizer": ["lazyMode"],
  // Gradients of TF.js are dense, and its variables float32.
  "@opt/tfjs: new TfOptimizer": ["lazyMode", "stochasticRounding"],
};

/** Options that tests give where types do not reach: in the text of a program, through a name, or on hardware. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  // Core's own code gives these, in what other tests compute: attention in several heads, and numbers in programs of rows.
  "@opt/core/backend: denseHeads": ["heads"],
  "@opt/core/backend: new RowExpression": ["value"],
  // Muon's steps give them, which its goldens try.
  "StagedStep.launch": ["constants"],
  // Sophia's estimates by a batch size give them, which its tests try.
  "@opt/core/backend: renewState": ["constants"],
  // What only a second GPU, a system with two of them, and MPI's launcher show.
  "@opt/kernels-cuda: openCudaBackend": ["index"],
  "@opt/kernels-webgpu: openWebGpuBackend": ["powerPreference"],
  "@opt/collectives-mpi: openMpi": ["timeout"],
  // data-parallel/buffers.test.ts
  "@opt/parallel: new DataParallel": ["broadcastBuffers"],
  // fully-sharded.test.ts
  "@opt/parallel: new FullyShardedDataParallel": ["broadcastBuffers"],
  // fully-sharded.test.ts, in the text of a program
  "FullyShardedDataParallel.loadStateDict": ["strict"],
  // testing/collectives.ts
  "Communicator.reduceScatter": ["reduction"],
  // sharded-optimizer.test.ts: by name, and in the text of its runs. configurations.test.ts draws modifications.
  "@opt/parallel: new ShardedOptimizer": ["stochasticRounding", "decay", ...OF_WHOLES],
  // wrappers' goldens give them
  "@opt/core: new SAM": ["adaptive"],
  "@opt/core: new ScheduleFree": ["momentum", "weightLrPower"],
  // transformation.test.ts of jax-js: in its list of optimizers, which step by rules
  "@opt/jax-js: gradientTransformation": ["maximize", "regularizer", "decay"],
  "GradientTransformation.update": ["decay"],
  "GradientTransformation.step": ["decay"],
  "@opt/core/backend: ruleSteps": ["decay"],
  "RuleSteps.next": ["decay"],
};

/** The runs of a file beside an optimizer. */
function storedRuns(file: string): readonly { readonly options: object }[] {
  const path = new URL(`../../packages/optimizers/${file}`, import.meta.url);
  const stored = JSON.parse(readFileSync(path, "utf8"));
  return Array.isArray(stored) ? stored : stored.runs;
}

/** Options that PyTorch's stored runs of optimizers give. */
function inGoldens(optimizers: readonly WorkspaceOptimizer[]): Map<string, Set<string>> {
  const runs: { optimizer: string; options: object }[] = [
    ...torchGoldens(),
    ...adafactorGoldens().map(({ options }) => ({ optimizer: "Adafactor", options })),
    ...muonGoldens().map(({ options }) => ({ optimizer: "Muon", options })),
    ...storedRuns("lbfgs/testing/runs.json").map(({ options }) => ({ optimizer: "LBFGS", options })),
    ...storedRuns("adam-amsgrad/testing/sparse-adam.json").map(({ options }) => ({ optimizer: "SparseAdam", options })),
  ];
  const found = new Map<string, Set<string>>();
  // Each run of a package's list is taken on every device.
  runs.push(
    ...["optax", "paper"]
      .flatMap((by) => readPackageGoldens<{ runs: typeof runs }>(by as "optax"))
      .flatMap(({ runs }) => runs),
  );
  for (const { name, runs: own } of optimizers) runs.push(...own.map((options) => ({ optimizer: name, options })));
  for (const { optimizer, options } of runs) {
    const known = found.get(optimizer) ?? new Set();
    found.set(optimizer, known);
    for (const name of Object.keys(options)) known.add(name);
  }
  return found;
}

const DEFINITIONS = definitionsIn(core);

/** Options that an op's definition gives, with which the tables of all ops call it. */
function inDefinition(callee: string, parameters: ReadonlyMap<number, ReadonlySet<string>>): string[] {
  const definition = DEFINITIONS.get(callee.replace("@opt/core: ", ""));
  if (definition === undefined || !callee.startsWith("@opt/core: ")) return [];
  const tensors = operandsOf(definition).map(() => "");
  const given = argumentsOf(definition, tensors, { axis: 1, flag: true });
  return [...parameters].flatMap(([place, options]) => {
    const value = given[place];
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return value === undefined ? [] : isObject ? Object.keys(value as object) : [...options];
  });
}

it("each option is given in a test that is not of an error", async () => {
  // The optimizers again.
  const packages = publishedPackages().filter(({ name }) => name !== "@opt/optim");
  const entries = packages.flatMap((each) => each.entries);
  const program = programOf(entries, isTest);
  const callees = readCallees(program, entries);
  const uses = readUses(program, callees, isTest);
  const optimizers = await workspaceOptimizers();
  const goldens = inGoldens(optimizers);
  const classes = new Set(optimizers.map(({ name }) => name));
  const missing = [...callees].flatMap(([declaration, { name, parameters }]) => {
    if (CALLED_BY_US.has(name)) return [];
    const className = name.replace(/.*new /, "");
    const tried = [
      classes.has(className) ? OF_EVERY_OPTIMIZER : [],
      uses.get(declaration) ?? [],
      goldens.get(className) ?? [],
      WITHOUT_EFFECT[name] ?? [],
      ELSEWHERE[name] ?? [],
      inDefinition(name, parameters),
    ];
    const known = new Set(tried.flatMap((each) => [...each]));
    const options = [...parameters.values()].flatMap((each) => [...each]);
    return options.filter((option) => !known.has(option)).map((option) => `${name} ${option}`);
  });
  expect(missing).toEqual([]);
});
