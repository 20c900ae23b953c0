/** Every project declares what it imports: npm's tree and a package's users know nothing else. */
import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";
import { workspaceFolders } from "../packages.mjs";
import { root } from "../run.mjs";

type Manifest = Record<string, Record<string, string> | undefined>;

const read = (path: string) => readFileSync(join(root, path), "utf8");
const list = (path: string, recursive = false) => readdirSync(join(root, path), { encoding: "utf8", recursive });

/** Programs of the workspace itself, which its projects do not repeat. */
const shared = Object.keys(JSON.parse(read("package.json")).devDependencies);
const notShipped = /\.(test|soak|config)\.ts$|^(src\/)?(testing|generate|tools)\//;
const projects = workspaceFolders();

/** The packages that a file names in imports of any kind. */
function imported(file: string): string[] {
  return ts
    .preProcessFile(read(file), true, true)
    .importedFiles.map(({ fileName }) => fileName)
    .filter((name) => /^[@a-z]/.test(name) && !isBuiltin(name))
    .map((name) => name.split("/", name.startsWith("@") ? 2 : 1).join("/"));
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
      return imported(`${project}/${file}`).flatMap((name) => (known.includes(name) ? [] : `${file}: ${name}`));
    });
  expect(undeclared).toEqual([]);
});
