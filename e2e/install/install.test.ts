/** What a user gets: the packed tarballs, in a folder that knows nothing of this workspace. */
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import MarkdownIt from "markdown-it";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serve } from "../../tools/docs/serve.mjs";
import { nx } from "../../tools/workspace/nx/run.mjs";
import { pack, publicPackages, tarballOf } from "../../tools/workspace/packages.mjs";
import { platformPackages } from "../../tools/workspace/platforms.mjs";
import { root, run } from "../../tools/workspace/run.mjs";
import { blockOf, readmeCommands, readmeExample } from "./readme";

const README = new URL("../../README.md", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "opt-install-"));
// Where `npm test` has packed them already they are not packed again.
const packed = process.env.OPT_TARBALLS ?? folder;

beforeAll(async () => {
  if (packed === folder) {
    await nx(["run-many", "--targets", "build"]);
    await pack(folder);
  }
  const tarballs = publicPackages().map((each) => tarballOf(packed, each));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  const flags = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  const installed = run("npm", ["install", "--prefix", folder, ...flags, ...tarballs], { cwd: folder, quiet: true });
  expect(installed.stderr).not.toMatch(/npm error/);
  expect(installed.ok).toBe(true);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What users import: `@opt/core`, `@opt/core/backend`, ... */
function entries(): string[] {
  return publicPackages().flatMap(({ name }) => {
    const { exports } = JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"));
    return Object.keys(exports).map((entry) => name + entry.slice(1));
  });
}

it("every entry of every package loads", () => {
  const modules = entries().filter((entry) => !entry.endsWith(".json"));
  expect(modules.length).toBeGreaterThan(publicPackages().length);
  const program = modules.map((entry) => `await import("${entry}");`).join("\n");
  expect(runInFolder(program)).toMatchObject({ ok: true, stdout: "", stderr: "" });
});

it("every entry of every package can be required by CommonJS", () => {
  const program = entries().map((entry) => `require("${entry}");`);
  expect(runInFolder(program.join("\n"), "program.cjs")).toMatchObject({ ok: true, stdout: "", stderr: "" });
});

it.each(publicPackages().map(({ name }) => name))(
  "%s has its licence, each source once, and stays in its folder",
  (name) => {
    const home = join(folder, "node_modules", name);
    expect(readFileSync(join(home, "LICENSE"), "utf8")).toMatch(/Apache License/);
    for (const file of readdirSync(home, { recursive: true, encoding: "utf8" })) {
      const text = /\.(js|ts|map)$/.test(file) ? readFileSync(join(home, file), "utf8") : "";
      if (file.endsWith(".map")) expect(JSON.parse(text).sourcesContent, file).toBeUndefined();
      else expect(text, file).not.toMatch(/["'`]\.\.\/\.\.\/\.\.\//);
      expect(file).not.toMatch(/\.test\.|\.soak\.|testing|__snapshots__/);
    }
  },
);

it("npm pack in a package's folder gives the same tarball", () => {
  const pack = (cwd: string, ...options: string[]): { filename: string; integrity: string }[] =>
    JSON.parse(run("npm", ["pack", "--dry-run", "--json", ...options], { cwd, quiet: true }).stdout);
  const packages = publicPackages();
  // npm does the same in the folder of a workspace, in half a second each.
  const all = pack(root, ...packages.flatMap(({ folder }) => ["--workspace", relative(root, folder)]));
  expect(all).toHaveLength(packages.length);
  for (const { filename, integrity } of [...all, ...pack(packages.at(-1)!.folder)]) {
    const hash = createHash("sha512").update(readFileSync(join(packed, filename)));
    expect(`sha512-${hash.digest("base64")}`, filename).toBe(integrity);
  }
});

it("a platform's package has its licence and a README", () => {
  const folders = platformPackages().map(({ folder }) => folder);
  const { stdout } = run("npm", ["pack", "--dry-run", "--json", ...folders], { quiet: true });
  const listed: { files: { path: string }[] }[] = JSON.parse(stdout);
  expect(listed).toHaveLength(folders.length);
  for (const { files } of listed)
    expect(files.map(({ path }) => path)).toEqual(expect.arrayContaining(["LICENSE", "README.md", "package.json"]));
});

const markdown = new MarkdownIt({ html: true });

/** What a page links to or shows, by Markdown or by HTML. */
function targetsOf(page: string): string[] {
  const html = markdown.render(page);
  return [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, target]) => decodeURI(target!));
}

it.each(publicPackages().map(({ name }) => name))("no link of %s's pages is dead", (name) => {
  const home = join(folder, "node_modules", name);
  const pages = readdirSync(home, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"));
  expect(pages).toContain("README.md");
  const dead = pages.flatMap((page) =>
    targetsOf(readFileSync(join(home, page), "utf8"))
      .filter((target) => !/^(https?|mailto):|^#/.test(target))
      .filter((target) => !existsSync(join(home, dirname(page), target.split("#")[0]!)))
      .map((target) => `${page}: ${target}`),
  );
  expect(dead).toEqual([]);
});

it("a file that needs an optional peer says what to install", () => {
  writeFileSync(join(folder, "model.weights.h5"), "\x89HDF\r\n\x1a\n", "latin1");
  const { ok, stderr } = runInFolder(
    `import { openSource } from "@opt/checkpoint"; await openSource("model.weights.h5");`,
  );
  expect(ok).toBe(false);
  expect(stderr).toMatch(/\[hdf5\] .*npm install h5wasm\.[\s\S]*code: 'UNSUPPORTED'/);
});

it("every engine of ranks is there, and says what starts it", () => {
  const { stdout } = runInFolder(`
    import "@opt/collectives-mpi";
    import { connect } from "@opt/parallel";
    console.log((await connect()).size);
    for (const engine of ["local", "mpi", "smoke"]) await connect({ engine }).catch(({ message }) => console.log(message));`);
  expect(stdout).toMatch(
    /^1\n.*npx opt-run -n 4 .*\n.*mpirun -n 4 .*\n.*must be one of mpi, local, single, got "smoke"/,
  );
});

it("opt-run's ranks train together, with the packed packages alone", () => {
  const program = `
    import { AdamW } from "@opt/adam-amsgrad";
    import { compile, Generator, randn } from "@opt/core";
    import { Linear } from "@opt/nn";
    import { connect, DataParallel, ShardedOptimizer } from "@opt/parallel";
    const communicator = await connect();
    const model = new Linear(4, 2, { generator: new Generator(1) });
    const parallel = new DataParallel(model, communicator);
    const optimizer = new ShardedOptimizer(AdamW, model.namedParameters(), { clip: { norm: 1 } }, communicator);
    const generator = new Generator(10 + communicator.rank);
    const forwardBackward = compile((x) => parallel.forward(x).pow(2).sum().backward());
    for (let step = 0; step < 3; step++) {
      forwardBackward(randn([5, 4], { generator }));
      await parallel.sync();
      await optimizer.step();
      optimizer.zeroGrad();
    }
    const weights = await communicator.gather(Array.from(model.parameters()[0].dataSync()));
    if (weights) console.log(weights.length, new Set(weights.map(String)).size);
    await communicator.close();`;
  writeFileSync(join(folder, "train.js"), program);
  const optRun = join("node_modules", ".bin", "opt-run");
  const { stdout, stderr } = run(process.execPath, [optRun, "--no-prefix", "-n", "3", "train.js"], {
    cwd: folder,
    quiet: true,
  });
  expect([stdout, stderr]).toEqual(["3 1\n", ""]);
});

it("there is one copy of the core", () => {
  const { stdout } = run("npm", ["ls", "@opt/core", "--all", "--parseable", "--prefix", folder], {
    cwd: folder,
    quiet: true,
  });
  expect(stdout.trim().split("\n")).toHaveLength(1);
});

it("the README's first lines make a project in which the example runs", () => {
  const home = join(folder, "home");
  const ofNpm = (key: string) => run("npm", ["config", "get", key], { quiet: true }).stdout.trim();
  // ~ is elsewhere, npm's settings and cache are not.
  const env = { HOME: home, npm_config_userconfig: ofNpm("userconfig"), npm_config_cache: ofNpm("cache") };
  const made = run("sh", ["-ec", readmeCommands(README)], { cwd: root, env, quiet: true });
  expect(made.ok, made.stdout + made.stderr).toBe(true);
  const project = join(home, "xor");
  writeFileSync(join(project, "example.js"), readmeExample(README));
  const { stdout, stderr } = run(process.execPath, ["example.js"], { cwd: project, quiet: true });
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^Float32Array\(4\)/);
});

const whole = blockOf(
  readFileSync(new URL("../../docs/how-to/no-bundler.md", import.meta.url), "utf8"),
  "html index.html",
);

it("the page without a bundler maps each name that its modules import", () => {
  const [, map] = /<script type="importmap">(.*?)<\/script>/s.exec(whole)!;
  const { imports }: { imports: Record<string, string> } = JSON.parse(map!);
  const [, program] = /<script type="module">(.*?)<\/script>/s.exec(whole)!;
  const seen = new Map([[join(folder, "index.html"), program!]]);
  const unmapped: string[] = [];
  for (const [file, text] of seen) {
    const statements = text.matchAll(/^\s*(?:import|export)\b[^;"]*"([^"\n]+)"|\bimport\("([^"\n]+)"\)/gm);
    for (const [, still, name = still] of statements) {
      if (name!.startsWith("node:")) continue; // behind a question that a page answers with no
      const path = name!.startsWith(".") ? join(dirname(file), name!) : join(folder, imports[name!] ?? "");
      if (path === folder) unmapped.push(`${name} in ${relative(folder, file)}`);
      else if (!seen.has(path)) seen.set(path, readFileSync(path, "utf8"));
    }
  }
  expect(unmapped).toEqual([]);
  expect(seen.size).toBeGreaterThan(Object.keys(imports).length);
});

it.skipIf(executablePath === undefined)("the page without a bundler learns XOR in Chromium", async () => {
  writeFileSync(join(folder, "index.html"), whole);
  const [browser, server] = await Promise.all([launchBrowser({ webgpu: false }), serve(folder)]);
  try {
    const page = await openPage(browser);
    await page.goto(server.address);
    await page.getByText("wasm: 0 1 1 0").waitFor();
  } finally {
    await Promise.all([browser.close(), server.close()]);
  }
});

/** Packages whose types need no host beside: TensorFlow.js and jax-js bring theirs. */
const typed = publicPackages()
  .map(({ name }) => name)
  .filter((name) => !/-(linux|darwin)-|tfjs|jax-js/.test(name));

const modules = fileURLToPath(new URL("../../node_modules/", import.meta.url));
const page = { lib: ["es2022", "dom"], types: [] };
const node = { lib: ["esnext"], types: ["node"], typeRoots: [join(modules, "@types")] };

// The others are in the matrix, with every version of TypeScript.
it.each([
  ["bundler, a page", { module: "esnext", moduleResolution: "bundler", ...page }],
  ["nodenext, Node without the DOM", { module: "nodenext", ...node }],
])("strict TypeScript takes every export (%s)", (_, options) => {
  const imports = typed.map((name, i) => `import * as p${i} from "${name}";\nexport { p${i} };`);
  const program = `import { keep, recompute, tensor } from "@opt/core";
    export const kept = keep(tensor([1])).add(1);
    export const again = recompute((x) => x.mul(2), kept);`;
  writeFileSync(join(folder, "consumer.ts"), [...imports, program].join("\n"));
  const compilerOptions = { noEmit: true, strict: true, target: "es2022", ...options };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["consumer.ts"] }));
  const tsc = join(modules, "typescript-7/bin/tsc");
  expect(run(process.execPath, [tsc, "-p", folder], { quiet: true }).stdout).toBe("");
});

function runInFolder(program: string, file = "program.js") {
  writeFileSync(join(folder, file), program);
  return run(process.execPath, [file], { cwd: folder, quiet: true });
}
