/** The rows of types: a program over every entry of every package, with the declarations themselves checked (`skipLibCheck: false`). */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publicPackages } from "../../../tools/workspace/packages.mjs";
import { start } from "../../../tools/workspace/run.mjs";
import type { Place } from "./runtimes";

const VERSIONS = ["5.4", "5.5", "5.6", "5.7", "5.8", "5.9", "6", "7"];

/** What npm installs them as, side by side. */
export const TYPESCRIPTS = VERSIONS.map((version) => `typescript-${version}@npm:typescript@${version}`);

/** Their hosts' own declarations are not strict: with these, only what we declare is checked. */
const ADAPTERS = ["@opt/jax-js", "@opt/tfjs"];

interface Form {
  readonly form: string;
  readonly options: Record<string, unknown>;
  readonly file?: string;
  readonly from?: number;
  readonly to?: number;
}

const NODE = { module: "nodenext" };
/**
 * CommonJS that requires ES modules is known to TypeScript since 5.8, and under its old resolution to all before 6.
 */
const FORMS: readonly Form[] = [
  { form: "bundler", options: { module: "esnext", moduleResolution: "bundler" } },
  { form: "nodenext, ESM", options: NODE },
  { form: "nodenext, CommonJS", options: NODE, file: "program.cts", from: 5.8 },
  {
    form: "commonjs, node10",
    options: { module: "commonjs", moduleResolution: "node10" },
    file: "program.ts",
    to: 5.9,
  },
  { form: "nodenext, without the DOM", options: { ...NODE, lib: ["es2022", "esnext.disposable"] } },
  { form: "adapters", options: { ...NODE, skipLibCheck: true }, from: 5.9 },
];

/** What the browser hands out is taken as it is. */
const PICKED = `import { blobFileSystem, opfsFileSystem } from "@opt/checkpoint";
export const picked = (folder: FileSystemDirectoryHandle, files: File[]) => [opfsFileSystem(folder), blobFileSystem(files)];
`;

function program(hasDom: boolean, hasAdapters: boolean): string {
  const entries = publicPackages()
    .filter(({ name }) => hasAdapters || !ADAPTERS.includes(name))
    .flatMap(({ name, exports = {} }) => Object.keys(exports).map((entry) => name + entry.slice(1)))
    .filter((entry) => !entry.endsWith(".json"));
  const imports = entries.map((entry, i) => `import * as entry${i} from "${entry}";`);
  return `${imports.join("\n")}
import { tensor } from "@opt/core";
export const all = [${entries.map((_, i) => `entry${i}`).join(", ")}];
export async function main(): Promise<Float32Array> {
  const x = tensor([1, 2, 3]);
  await fetch("data:,", { method: "POST", body: await x.bytes() });
  const elements: Float32Array = await x.mul(2).data();
  return elements;
}
${hasDom ? PICKED : ""}`;
}

const rowsOf = (version: string) =>
  FORMS.filter(({ from = 0, to = 99 }) => from <= Number(version) && Number(version) <= to).map((form) => ({
    ...{ name: `TypeScript ${version}, ${form.form}`, version },
    ...{ file: form.file ?? "program.mts", options: form.options },
  }));
export const typeRows = VERSIONS.flatMap(rowsOf);

/** What the compiler says. */
export async function compile({ name, version, file, options }: (typeof typeRows)[number], place: Place) {
  const modules = join(place.tools, "node_modules");
  const types = { types: ["node"], typeRoots: [join(modules, "@types")] };
  const lib = ["es2023", "dom", "esnext.disposable"];
  const strict = { target: "es2022", lib, strict: true, noEmit: true, skipLibCheck: false, ...types };
  const project = join(place.folder, "types", name.replace(/\W+/g, "-"));
  mkdirSync(project, { recursive: true });
  writeFileSync(join(project, file), program(!("lib" in options), "skipLibCheck" in options));
  const config = { compilerOptions: { ...strict, ...options }, files: [file] };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config));
  const args = [join(modules, `typescript-${version}/bin/tsc`), "-p", project];
  const { stdout, stderr } = await start(process.execPath, args, { quiet: true, cwd: place.folder });
  return `${stdout}${stderr}`.trim();
}
