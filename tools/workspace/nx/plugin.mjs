/**
 * Nx's plugin: each folder with a manifest is a project, and its targets follow from what it has. A new package writes a manifest and
 * nothing else. `npx nx show project nadam` lists what comes of it.
 */
import { basename, join } from "node:path";
import { platformName } from "../../native/native.mjs";
import { hasFile, NATIVE, neededBy, projectsOf } from "./graph.mjs";

/** @typedef {import("./graph.mjs").Project} Project */
/** @typedef {Map<string, Project>} Projects */

// As text: `npm start` has Nx without its kit of types.
const STATIC = /** @type {import("@nx/devkit").DependencyType.static} */ (/** @type {unknown} */ ("static"));
const IMPLICIT = /** @type {import("@nx/devkit").DependencyType.implicit} */ (/** @type {unknown} */ ("implicit"));

const EXECUTORS = "./tools/workspace/nx";
const MANIFESTS = "{packages,packages/optimizers,e2e,native}/*/package.json";
const TOOLS = "{workspaceRoot}/tools/workspace/nx/**/*";

/** What `name` is made of by an executor: its own files, and others' without tests. @param {string} input @param {readonly string[]} needed */
const withOthers = (input, needed) => (needed.length === 0 ? [] : [{ input, projects: needed }]);

/** @param {Project} project @param {Projects} projects */
function buildTarget({ name, shipped }, projects) {
  const needed = neededBy(projects, name, "shipped");
  return {
    executor: `${EXECUTORS}:build`,
    dependsOn: shipped
      .filter((each) => projects.get(each)?.isPublic)
      .map((each) => ({ target: "build", projects: each })),
    inputs: ["production", ...withOthers("production", needed), "tools of packages"],
    outputs: ["{projectRoot}/dist"],
    cache: true,
    metadata: { description: "Modules and declarations for users, in dist." },
  };
}

/** The native builds that a project's tests open. @param {string} name @param {readonly string[]} needed */
const nativeOf = (name, needed) => [name, ...needed].flatMap((each) => NATIVE[each] ?? []);

/** What native kernels are generated from. @param {Projects} projects */
const rulesOf = (projects) => ["@opt/testkit", ...neededBy(projects, "@opt/optim", "shipped")];

/**
 * Inputs are sources, not what is built of them, so that a test has one hash whether or not builds run with it.
 * @param {Project} project
 * @param {Projects} projects
 */
function testTarget({ name, reads }, projects) {
  const own = neededBy(projects, name, "all");
  const native = nativeOf(name, own);
  const readsBuilt = reads.includes("dist");
  const packages = [...projects.values()].filter(({ isPublic }) => isPublic).map((each) => each.name);
  const needed = new Set([...own, ...(readsBuilt ? packages : []), ...(native.length > 0 ? rulesOf(projects) : [])]);
  needed.delete(name);
  return {
    executor: `${EXECUTORS}:test`,
    dependsOn: [
      ...native.map((each) => ({ target: "native", projects: each })),
      ...(readsBuilt ? packages : []).map((each) => ({ target: "build", projects: each })),
    ],
    inputs: [
      "default",
      ...withOthers("sources", [...needed].sort()),
      ...withOthers("default", native),
      ...reads.filter((each) => each !== "dist").map((each) => `{workspaceRoot}/${each}`),
      "tools of tests",
    ],
    outputs: ["{workspaceRoot}/runs/test/{projectName}.json"],
    cache: true,
    metadata: { description: "Its tests, with vitest." },
  };
}

/** @param {Project} project @param {Projects} projects */
function typecheckTarget({ name }, projects) {
  return {
    executor: `${EXECUTORS}:typecheck`,
    inputs: ["default", ...withOthers("sources", neededBy(projects, name, "all")), "tools of packages"],
    outputs: [],
    cache: true,
    metadata: { description: "Types of its sources and tests, with TypeScript 7." },
  };
}

const LINT = {
  executor: `${EXECUTORS}:lint`,
  inputs: ["default", "{workspaceRoot}/.biome.jsonc", "{workspaceRoot}/package-lock.json", TOOLS],
  outputs: [],
  cache: true,
  metadata: { description: "Format and style, with Biome." },
};

/** @param {string} root @param {Project} project @param {Projects} projects */
function targetsOf(root, project, projects) {
  const isTested = hasFile(join(root, project.folder), /\.test\.ts$/);
  return {
    ...(project.isPublic && { build: buildTarget(project, projects) }),
    ...(isTested && { test: testTarget(project, projects) }),
    typecheck: typecheckTarget(project, projects),
    lint: LINT,
  };
}

/** Where a native build puts what its package opens. @type {Readonly<Record<string, string[]>>} */
const BINARIES = {
  "native-cpu": ["{options.binary}"],
  "native-cuda": [
    "{projectRoot}/npm/linux-x64/opt_cuda.node",
    "{projectRoot}/npm/linux-x64/kernels",
    "{projectRoot}/build/emulator",
  ],
  "native-mpi": [`{projectRoot}/npm/${platformName()}/opt_mpi.node`],
};

/** The variants of native-cpu. `--binary` is for Nx, which keeps what is there. @param {string} folder */
const cpuOptions = (folder) => ({
  options: { binary: `${folder}/npm/${platformName()}/opt_cpu.node` },
  configurations: Object.fromEntries(
    ["processor", "sanitize", "neon"].map((variant) => [
      variant,
      { variant, binary: `${folder}/build/${variant}/opt_cpu.node` },
    ]),
  ),
});

/** @param {string} root @param {Project} project @param {Projects} projects */
function nativeTargets(root, { name, folder }, projects) {
  const device = basename(folder);
  const consumer = Object.keys(NATIVE).find((each) => NATIVE[each] === name) ?? "";
  const generates = hasFile(join(root, projects.get(consumer)?.folder ?? "", "src/generate"), /\.ts$/);
  const rules = [consumer, ...rulesOf(projects)];
  const command = `node tools/native/build-${device}.mjs`;
  const tools = [
    ...["native", `build-${device}`].map((each) => `{workspaceRoot}/tools/native/${each}.mjs`),
    { runtime: "node tools/workspace/nx/machine.mjs" },
  ];
  return {
    ...(generates && {
      generate: {
        command: `${command} --generate`,
        inputs: [...withOthers("sources", rules), ...tools],
        outputs: ["{projectRoot}/build/generated"],
        cache: true,
        metadata: { description: "Kernels of all optimizers' rules, as source code." },
      },
    }),
    native: {
      command,
      ...(generates && { dependsOn: ["generate"] }),
      inputs: [
        ...["src", "kernels", "emulator"].map((each) => `{projectRoot}/${each}/**/*`),
        "{projectRoot}/CMakeLists.txt",
        ...(generates ? [{ dependentTasksOutputFiles: "**/*", transitive: false }] : []),
        ...tools,
        { env: "CXX" },
        { env: "OPT_CUDA_ARCHS" },
      ],
      outputs: BINARIES[name],
      cache: true,
      metadata: { description: "The binaries of this platform." },
      ...(device === "cpu" && cpuOptions(folder)),
    },
  };
}

/** What is not a package: the tools, the documentation, and the files at the top. */
const OTHERS = {
  tools: {
    root: "tools",
    name: "tools",
    targets: {
      test: {
        executor: `${EXECUTORS}:test`,
        inputs: [
          "default",
          "^default",
          "{workspaceRoot}/e2e/**/*",
          "{workspaceRoot}/native/*/npm/**/*",
          "{workspaceRoot}/docs/guides/*",
          ...["LICENSE", ".biome.jsonc", "package.json"].map((file) => `{workspaceRoot}/${file}`),
          "tools of tests",
        ],
        outputs: ["{workspaceRoot}/runs/test/{projectName}.json"],
        cache: true,
        metadata: { description: "Its tests, with vitest." },
      },
      typecheck: {
        executor: `${EXECUTORS}:typecheck`,
        inputs: ["default", "^sources", "tools of packages"],
        outputs: [],
        cache: true,
        metadata: { description: "Types of the tools." },
      },
      lint: LINT,
    },
  },
  docs: {
    root: "docs",
    name: "docs",
    targets: {
      docs: {
        command: "node tools/docs/main.mjs build",
        inputs: [
          "default",
          "^sources",
          ...["docs", "workspace"].map((folder) => `{workspaceRoot}/tools/${folder}/**/*`),
          "{workspaceRoot}/packages/**/README.md",
          // The demos train them.
          ...["browser-mnist", "fine-tune", "leaderboard", "same-run", "tiny-gpt"].map(
            (name) => `{workspaceRoot}/e2e/${name}/**/*`,
          ),
          ...["LICENSE", "package-lock.json", "tsconfig.base.json"].map((file) => `{workspaceRoot}/${file}`),
        ],
        outputs: ["{workspaceRoot}/runs/docs"],
        cache: true,
        metadata: { description: "The site, in runs/docs." },
      },
      lint: LINT,
    },
  },
  workspace: {
    root: ".",
    name: "workspace",
    targets: {
      lint: {
        command: "node tools/test/workspace.mjs",
        inputs: ["{workspaceRoot}/**/*"],
        cache: false,
        metadata: { description: "What concerns all projects: manifests, words, changesets, unused code." },
      },
    },
  },
};

/** @param {readonly string[]} files @param {string} root */
const projectsIn = (files, root) =>
  projectsOf(
    root,
    files.filter((path) => path !== "nx.json"),
  );

/** @type {import("@nx/devkit").CreateNodesV2} */
export const createNodesV2 = [
  `{nx.json,${MANIFESTS}}`,
  (files, _, { workspaceRoot }) => {
    const projects = projectsIn(files, workspaceRoot);
    return files.map((file) => {
      if (file === "nx.json")
        return [file, { projects: Object.fromEntries(Object.values(OTHERS).map((each) => [each.root, each])) }];
      const project = [...projects.values()].find(({ folder }) => file === `${folder}/package.json`);
      if (project === undefined) throw new Error(`[nx] a project must have a name of its own, got ${file}.`);
      const { name, folder } = project;
      const targets = folder.startsWith("native/")
        ? nativeTargets(workspaceRoot, project, projects)
        : targetsOf(workspaceRoot, project, projects);
      return [
        file,
        {
          projects: {
            [folder]: { name, root: folder, projectType: project.isPublic ? "library" : "application", targets },
          },
        },
      ];
    });
  },
];

/**
 * What users of a package get is an edge. What only tests need is an input of `test` instead: tests of core use the test kit, which uses
 * core, and a build must not go round in circles.
 * @type {import("@nx/devkit").CreateDependencies}
 */
export const createDependencies = (_, { projects: known, workspaceRoot }) => {
  const folders = Object.values(known).map(({ root }) => root);
  const manifests = folders
    .filter((folder) => /^(packages|e2e|native)\//.test(folder))
    .map((folder) => `${folder}/package.json`);
  const projects = projectsOf(workspaceRoot, manifests);
  const all = [...projects.values()];
  const declared = all.flatMap((each) =>
    (each.isPublic ? each.shipped : each.all).map((target) => ({
      source: each.name,
      target,
      sourceFile: `${each.folder}/package.json`,
      type: STATIC,
    })),
  );
  const others = [
    ...Object.entries(NATIVE).map(([source, target]) => ({ source, target })),
    ...all
      .filter(({ isPublic }) => isPublic)
      .flatMap(({ name }) => ["docs", "tools"].map((source) => ({ source, target: name }))),
  ].map((each) => ({ ...each, type: IMPLICIT }));
  return [...declared, ...others];
};

/** Leaves the tasks of a run where `OPT_TASKS` names a file: `npm test` counts them. @type {import("@nx/devkit").PostTasksExecution} */
export const postTasksExecution = async (_, { taskResults }) => {
  const { writeFileSync } = await import("node:fs");
  if (process.env.OPT_TASKS === undefined) return;
  const tasks = Object.values(taskResults).map(({ task, status, terminalOutput = "" }) => ({
    id: task.id,
    status,
    terminalOutput,
  }));
  writeFileSync(process.env.OPT_TASKS, JSON.stringify(tasks));
};

export const name = "opt";
