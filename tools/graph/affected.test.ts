/** What a change affects: Nx's graph and inputs, asked about sample changes. Too little makes a false green; too much costs time. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { filterAffected } from "nx/src/project-graph/affected/affected-project-graph";
import { calculateFileChanges } from "nx/src/project-graph/file-utils";
import { createProjectGraphAsync } from "nx/src/project-graph/project-graph";
import { expect, it } from "vitest";
import { root, start } from "../run.mjs";

// A new project gets its name here, and in the rows of what it depends on.
const e2e = [
  "browser-checkpoint",
  "browser-mnist",
  "custom-optimizer",
  "docs",
  "fine-tune",
  "goldens",
  "hybrid-parallel",
  "install",
  "mnist",
  "programs",
  "same-run",
  "tiny-gpt",
];
const devices = ["kernels-cpu", "kernels-cuda", "kernels-wasm", "kernels-webgpu"];
const algorithms = readdirSync(join(root, "packages/optimizers")).filter((name) => !name.includes("."));
const others = [
  ...algorithms,
  "checkpoint",
  "collectives-mpi",
  "core",
  "data",
  "jax-js",
  "nn",
  "optim",
  "parallel",
  "testkit",
  "tfjs",
  "train",
];
const everything = [...e2e, ...devices, ...others, "tools"];

const everythingBut = (...names: string[]) => everything.filter((name) => !names.includes(name));

const CHANGES: readonly (readonly [file: string, affected: readonly string[]])[] = [
  ["packages/core/src/index.ts", everything],
  ["packages/testkit/src/index.ts", everything],
  ...algorithms.map((name): [string, readonly string[]] => [
    `packages/optimizers/${name}/src/index.ts`,
    everythingBut(...algorithms.filter((other) => other !== name), "core", "data", "nn", "testkit"),
  ]),
  [
    "packages/parallel/src/index.ts",
    [
      "parallel",
      "collectives-mpi",
      "docs",
      "fine-tune",
      "hybrid-parallel",
      "install",
      "mnist",
      "same-run",
      "tiny-gpt",
      "browser-mnist",
      "train",
      "tools",
    ],
  ],
  [
    "packages/data/src/index.ts",
    [
      "data",
      "docs",
      "fine-tune",
      "install",
      "mnist",
      "tfjs",
      "same-run",
      "tiny-gpt",
      "browser-mnist",
      "train",
      "tools",
    ],
  ],
  ["packages/tfjs/src/index.ts", ["tfjs", "docs", "install", "tools"]],
  ["packages/jax-js/src/index.ts", ["jax-js", "docs", "install"]],
  [
    "packages/nn/src/index.ts",
    [
      "nn",
      "parallel",
      "jax-js",
      "tfjs",
      "collectives-mpi",
      "kernels-cuda",
      "kernels-wasm",
      "kernels-webgpu",
      "browser-checkpoint",
      "browser-mnist",
      "custom-optimizer",
      "docs",
      "fine-tune",
      "goldens",
      "hybrid-parallel",
      "install",
      "mnist",
      "programs",
      "same-run",
      "tiny-gpt",
      "train",
      "tools",
    ],
  ],
  [
    "packages/checkpoint/src/index.ts",
    [
      "checkpoint",
      "parallel",
      "jax-js",
      "tfjs",
      "collectives-mpi",
      "browser-checkpoint",
      "browser-mnist",
      "docs",
      "fine-tune",
      "hybrid-parallel",
      "install",
      "mnist",
      "programs",
      "same-run",
      "tiny-gpt",
      "train",
      "tools",
    ],
  ],
  [
    "packages/kernels-wasm/src/index.ts",
    [
      "kernels-wasm",
      "parallel",
      "collectives-mpi",
      "tfjs",
      ...e2e.filter((name) => name !== "browser-checkpoint"),
      "train",
      "tools",
    ],
  ],
  [
    "packages/kernels-webgpu/src/index.ts",
    ["kernels-webgpu", "browser-mnist", "docs", "goldens", "install", "mnist", "programs", "tools"],
  ],
  [
    "native/cpu/src/pool.cc",
    [
      "kernels-cpu",
      "parallel",
      "tfjs",
      "collectives-mpi",
      "custom-optimizer",
      "docs",
      "fine-tune",
      "goldens",
      "hybrid-parallel",
      "install",
      "mnist",
      "programs",
      "same-run",
      "tiny-gpt",
      "browser-mnist",
      "train",
      "tools",
    ],
  ],
  ["native/cuda/kernels/reduce.cu", ["kernels-cuda", "goldens", "docs", "install", "tools"]],
  ["native/mpi/src/owner.cc", ["collectives-mpi", "docs", "hybrid-parallel", "install", "tools"]],
  ["tools/build-mpi.mjs", ["collectives-mpi", "docs", "hybrid-parallel", "install", "tools"]],
  ["tools/build-cuda.mjs", ["kernels-cuda", "goldens", "docs", "install", "tools"]],
  ["e2e/mnist/src/model.ts", ["mnist", "tools"]],
  ["README.md", ["docs", "install"]],
  ["tsconfig.base.json", [...everything, "nx-tools"]],
  ["package-lock.json", [...everything, "nx-tools"]],
  ["tools/vitest.config.ts", everything],
  ["LICENSE", []],
];

const graph = await createProjectGraphAsync();

it.each(CHANGES)("a change in %s", async (file, affected) => {
  const { nodes } = await filterAffected(graph, calculateFileChanges([file]));
  const names = Object.keys(nodes).map((name) => name.replace(/^@opt(-e2e)?\//, ""));
  expect(names.sort()).toEqual([...affected].sort());
});

it("Nx's graph has no circle", () => {
  const { dependencies } = graph;
  const onTheWay = new Set<string>();
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (name: string) => {
    if (done.has(name) || name.startsWith("npm:")) return;
    if (onTheWay.has(name)) circles.push([...onTheWay, name].join(" > "));
    else {
      onTheWay.add(name);
      for (const { target } of dependencies[name] ?? []) visit(target);
      onTheWay.delete(name);
      done.add(name);
    }
  };
  for (const name of Object.keys(dependencies)) visit(name);
  expect(circles).toEqual([]);
});

it.each(["@opt/kernels-cpu", "@opt-e2e/goldens"])(
  "a test of %s is cached with the native code that it ran",
  async (name) => {
    const { stdout } = await start("nx", ["run", `${name}:test`, "--graph=stdout"], { quiet: true });
    const { tasks, taskPlans } = JSON.parse(stdout);
    expect(tasks.dependencies[`${name}:test`]).toContain("@opt/kernels-cpu:native");
    expect(taskPlans[`${name}:test`].join()).toContain("{workspaceRoot}/native/cpu/**/*");
  },
);

it("a build is made anew with its tools and how they are used, and not for another package's version", async () => {
  const { stdout } = await start("nx", ["run", "@opt/nadam:build", "--graph=stdout"], { quiet: true });
  const plan = JSON.parse(stdout).taskPlans["@opt/nadam:build"].join();
  for (const input of ["tools/tsup.ts", "tsconfig.base.json", "npm:tsup", "npm:typescript", "packages/core/**/*"])
    expect(plan).toContain(input);
  expect(plan).not.toContain("package-lock.json");
});
