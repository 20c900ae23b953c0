/** Every project declares what it imports: npm's tree and a package's users know nothing else. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import ts from "typescript";
import { expect, it } from "vitest";
import { workspaceFolders } from "./packages.mjs";
import { root } from "./run.mjs";

type Manifest = Record<string, Record<string, string> | undefined>;

const read = (path: string) => readFileSync(join(root, path), "utf8");
const list = (path: string, recursive = false) => readdirSync(join(root, path), { encoding: "utf8", recursive });

/** Programs of the workspace itself, which its projects do not repeat. */
const shared = Object.keys(JSON.parse(read("package.json")).devDependencies);
const notShipped = /\.(test|soak|config)\.ts$|^(src\/)?(testing|generate|tools)\//;
const projects = workspaceFolders();

/** The packages that a file names in imports of any kind; for a project of ours also those of files outside of it. */
function imported(file: string, project?: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const names = ts.preProcessFile(read(file), true, true).importedFiles.map(({ fileName }) => fileName);
  const packages = names.filter((name) => /^[@a-z]/.test(name) && !isBuiltin(name));
  const elsewhere = (project ? names : [])
    .filter((name) => name.startsWith("."))
    .map((name) => join(dirname(file), name))
    .filter((path) => !path.startsWith(`${project}/`))
    .flatMap((path) => [path, `${path}.ts`, `${path}/index.ts`].filter((each) => /\.m?ts$|\.mjs$/.test(each)))
    .filter((path) => existsSync(join(root, path)));
  return [
    ...packages.map((name) => name.split("/", name.startsWith("@") ? 2 : 1).join("/")),
    ...elsewhere.flatMap((path) => imported(path, project, seen)),
  ];
}

it.each(projects)("%s declares what it imports", (project) => {
  const manifest = JSON.parse(read(`${project}/package.json`)) as Manifest;
  const keys = (...kinds: string[]) => kinds.flatMap((kind) => Object.keys(manifest[kind] ?? {}));
  const forUsers = keys("dependencies", "peerDependencies", "optionalDependencies");
  const forUs = [...forUsers, ...keys("devDependencies"), ...shared, String(manifest.name)];
  const undeclared = list(project, true)
    .filter((file) => /\.tsx?$/.test(file) && !/(^|\/)(node_modules|dist|build)\//.test(file))
    .flatMap((file) => {
      const known = manifest.private || notShipped.test(file) ? forUs : forUsers;
      return imported(`${project}/${file}`, manifest.private ? project : undefined).flatMap((name) =>
        known.includes(name) ? [] : `${file}: ${name}`,
      );
    });
  expect(undeclared).toEqual([]);
});

it.each(["workspace/start", "test/main", "workspace/setup", "docs/main", "release/needed"])(
  "tools/%s.mjs begins where no npm package is installed",
  async (name) => {
    const entry = `tools/${name}.mjs`;
    const options = { bundle: true, write: false, metafile: true, packages: "external", absWorkingDir: root } as const;
    const { metafile } = await build({ ...options, entryPoints: [entry], format: "esm", platform: "node" });
    const files = [entry];
    const needed: string[] = [];
    // A list that grows while it is walked: what each file loads before its own first line.
    for (const file of files)
      for (const { path, kind, external } of metafile.inputs[file]?.imports ?? [])
        if (kind === "import-statement") (external ? needed : files).push(path);
    expect(needed.filter((each) => !isBuiltin(each))).toEqual([]);
  },
);
