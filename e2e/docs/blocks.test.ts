/** Every block of code in the documentation runs, or is checked against what it speaks of; none is only text. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { convertCheckpoint, saveCheckpoint } from "@opt/checkpoint";
import { tensor } from "@opt/core";
import { torchPython } from "@opt/testkit";
import { bundled, optRun } from "@opt/testkit/bundled";
import { type BuildOptions, build } from "esbuild";
import { beforeAll, describe, expect, it } from "vitest";
import { writtenPages } from "./examples";
import { publishedPackages } from "./exports";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "opt-blocks-"));
const BUILD = `${ROOT}e2e/docs/build/`;
const names = publishedPackages().map(({ name }) => name);
/** Others' packages: what adapters are for, and what is loaded when it is used. */
const hosts = [
  ...["@huggingface/tokenizers", "@huggingface/jinja"],
  "@jax-js/jax",
  ...["tfjs-core", "tfjs-layers", "tfjs-backend-cpu", "tfjs-backend-wasm"].map((name) => `@tensorflow/${name}`),
];
const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8"));

interface Block {
  readonly place: string;
  readonly language: string;
  readonly text: string;
}

function blocksOf(file: string): Block[] {
  const text = readFileSync(ROOT + file, "utf8");
  return [...text.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map(([, language, body], i) => ({
    place: `${file}, block ${i + 1}`,
    language: language!,
    text: body!,
  }));
}

const pages = writtenPages();
const readmes = publishedPackages().map(({ readme }) => readme.slice(ROOT.length));
const files = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", ...readmes, ...pages];
const blocks = files.flatMap(blocksOf);

/** Runs a line of a shell as a reader would, beside a checkpoint of three tensors. */
function shell(line: string, cwd: string): void {
  const bin = `${ROOT}node_modules/.bin`;
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, npm_config_loglevel: "error" };
  const { status, stderr, stdout } = spawnSync("sh", ["-c", line], { cwd, env, encoding: "utf8" });
  expect(status, `${line}\n${stdout}${stderr}`).toBe(0);
}

const [optCheckpoint] = await bundled(`${ROOT}packages/checkpoint/src/command/cli.ts`);
const [launcher] = await bundled(optRun);

/** The program of a page is the block that names itself so; it lies where the packages are found. */
async function program(file: string, place: string): Promise<string> {
  const page = (where: string) => where.split(",")[0];
  const block = blocks.find((each) => page(each.place) === page(place) && each.text.startsWith(`// ${file}\n`));
  writeFileSync(`${BUILD}${file}`, block!.text);
  return (await bundled(BUILD + file))[0];
}

/** As root, and with more ranks than processors: what the README says to add there. */
const mpirun = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 mpirun";

/** What is done with a line, by its first words. The first that fits. */
const LINES: readonly (readonly [RegExp, (line: string, matched: RegExpExecArray, place: string) => unknown])[] = [
  // Not typed into npm: its names are those of our packages, and cover what the examples import.
  [
    /^npm (?:i|install) (.*)$/,
    (_, [, list]) => {
      for (const name of list!.split(/\s+/)) expect([...names, "webgpu", "h5wasm", ...hosts]).toContain(name);
    },
  ],
  // Scripts of the workspace take minutes: only that they exist is seen here.
  [/^npm ci$/, () => expect(existsSync(`${ROOT}package-lock.json`)).toBe(true)],
  [/^npm (start|test)$/, (_, [, script]) => expect(scripts).toHaveProperty(script!)],
  [
    /^npx nx (test|typecheck|build|graph|affected|run-many|native|show|reset)\b/,
    (_, [, target]) => expect(target).toBeDefined(),
  ],
  [/^(?:OPT_\w+=\S+ )*npm run (\S+)/, (_, [, script]) => expect(scripts).toHaveProperty([script!])],
  [
    /(?:^| )npx tsx --conditions=@opt\/source (\S+)$/,
    (_, [, file]) => expect(existsSync(ROOT + file), file).toBe(true),
  ],
  [/^npx opt-checkpoint (.*)$/, (_, [, rest]) => shell(`node ${optCheckpoint} ${rest}`, folder)],
  [
    /^npx opt-run -n (\d) (\w+\.js)$/,
    async (_, [, ranks, file], place) => shell(`node ${launcher} -n ${ranks} ${await program(file!, place)}`, folder),
  ],
  [
    /^mpirun -n (\d) node (\w+\.js)$/,
    async (_, [, ranks, file], place) => {
      if (spawnSync("mpirun", ["--version"]).status !== 0) return;
      shell(`${mpirun} -n ${ranks} node ${await program(file!, place)}`, folder);
    },
  ],
  [/^node --conditions=@opt\/source /, (line) => shell(line, ROOT)],
  [/^mkdir \w+ && cd /, (line) => shell(line, folder)],
];

beforeAll(async () => {
  mkdirSync(BUILD, { recursive: true });
  writeFileSync(join(folder, "package.json"), "{}");
  await saveCheckpoint(join(folder, "runs/mesh"), { step: 1, tensors: { w: tensor([1, 2, 3]) } }, { world: 3 });
  // What PyTorch's blocks of a page write, where there is no PyTorch.
  const whole = { weight: tensor([1, 2]), "weight.exp_avg": tensor([3, 4]) };
  await saveCheckpoint(join(folder, "runs/64"), { step: 1, tensors: whole }, { world: 64 });
  await convertCheckpoint(join(folder, "runs/64"), join(folder, "dcp-64"), { to: "dcp" });
  await convertCheckpoint(join(folder, "runs/64"), join(folder, "run.pt"), { to: "pt" });
});

const PROJECT: BuildOptions = {
  bundle: true,
  write: false,
  format: "esm",
  conditions: ["@opt/source"],
  external: ["react", "react/*", "node:*"],
  jsx: "automatic",
};

const HEADERS = [
  ["Cross-Origin-Opener-Policy", "same-origin"],
  ["Cross-Origin-Embedder-Policy", "require-corp"],
] as const;

it("the README is read in a minute", () => {
  const text = readFileSync(`${ROOT}README.md`, "utf8").replace(/```[\s\S]*?```/g, "");
  const words = text.replace(/<[^>]*>|\]\([^)]*\)/g, " ").match(/[\w`'@/.-]*\w[\w`'@/.-]*/g)!;
  expect(words.length).toBeLessThanOrEqual(400);
  expect(text.match(/<img /g)!.length).toBeGreaterThanOrEqual(3);
});

describe("blocks of the documentation", () => {
  it("are found", () => expect(blocks.length).toBeGreaterThan(30));

  it.for(blocks)("$place ($language)", async ({ place, language, text }, { skip }) => {
    const [kind, file] = language.split(" ");
    if (/^(?:js|js run|ts|text output)$/.test(language)) return; // runs in examples.test.ts
    if (/^README.md, block 1$|^docs\/how-to\/(install|no-bundler)\.md/.test(place)) return; // runs in e2e/install
    if (place.startsWith("docs/tutorials/from-pytorch.md") && file !== undefined) return; // runs in from-pytorch.test.ts
    if (place.startsWith("docs/guides/side-by-side.md") && file !== undefined) return; // trained by e2e/programs
    if (kind === "python") {
      if (torchPython === undefined) return skip("OPT_TORCH_PYTHON is not set");
      execFileSync(torchPython, ["-c", text], { cwd: folder });
    } else if (kind === "http") {
      expect(text.trim().split("\n")).toEqual(HEADERS.map(([name, value]) => `${name}: ${value}`));
    } else if (file !== undefined && /^jsx?$/.test(kind!) && file !== "vite.config.js") {
      // A file of a project: its imports are there.
      await build({ ...PROJECT, stdin: { contents: text, loader: "jsx", resolveDir: BUILD } });
    } else if (kind === "html") {
      expect(text).toContain('<script type="module" src="/main.js">');
    } else if (file === "vite.config.js") {
      const config = await import(`data:text/javascript,${encodeURIComponent(text)}`);
      expect(config.default.server.headers).toEqual(Object.fromEntries(HEADERS));
      for (const name of config.default.optimizeDeps?.include ?? []) expect(names).toContain(name);
    } else {
      expect(kind, "a block that no test runs").toBe("sh");
      for (const line of text.trim().split("\n")) {
        const bare = line.replace(/\s+#.*$/, "").trim();
        if (bare === "") continue;
        const rule = LINES.find(([pattern]) => pattern.test(bare));
        expect(rule, `a line that no test runs: ${bare}`).toBeDefined();
        await rule![1](bare, rule![0].exec(bare)!, place);
      }
    }
  });

  it.each(pages)("%s installs what it imports", (page) => {
    const own = blocksOf(page);
    const lines = own.flatMap(({ text }) =>
      [...text.matchAll(/^npm (?:i|install) (.*)$/gm)].flatMap(([, list]) => list!.split(/\s+/)),
    );
    const imported = own
      .filter(({ language }) => /^(?:js|ts)\b/.test(language))
      .flatMap(({ text }) => [...text.matchAll(/(?:from|^import) "(@opt\/[\w-]+)/gm)]);
    if (lines.length > 0) for (const [, name] of imported) expect(lines).toContain(name);
  });
});
