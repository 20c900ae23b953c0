/** The rows of types: a program over every entry of every package, with the declarations themselves checked (`skipLibCheck: false`). */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publicPackages } from "../packages.mjs";
import { start } from "../run.mjs";

const VERSIONS = ["5.4", "5.5", "5.6", "5.7", "5.8", "5.9", "6", "7"];

/** What npm installs them as, side by side. */
export const typescripts = VERSIONS.map((version) => `typescript-${version}@npm:typescript@${version}`);

/** Their hosts' own declarations are not strict: with these, only what we declare is checked. */
const ADAPTERS = ["@opt/jax-js", "@opt/tfjs"];

const ESM = { file: "program.mts", from: 5.4, to: 99, options: { module: "nodenext" } };
/** CommonJS that requires ES modules is known to TypeScript since 5.8, and under its old resolution to all before 6. */
const FORMS = [
  { ...ESM, form: "bundler", options: { module: "esnext", moduleResolution: "bundler" } },
  { ...ESM, form: "nodenext, ESM" },
  { ...ESM, form: "nodenext, CommonJS", file: "program.cts", from: 5.8 },
  {
    form: "commonjs, node10",
    file: "program.ts",
    options: { module: "commonjs", moduleResolution: "node10" },
    from: 5.4,
    to: 5.9,
  },
  {
    ...ESM,
    form: "nodenext, without the DOM",
    options: { module: "nodenext", lib: ["es2022", "esnext.disposable"], types: ["node"] },
  },
  { ...ESM, form: "adapters", options: { module: "nodenext", skipLibCheck: true }, from: 5.9 },
];

/** What the browser hands out is taken as it is. */
const PICKED = `import { blobFileSystem, opfsFileSystem } from "@opt/checkpoint";
export const picked = (folder: FileSystemDirectoryHandle, files: File[]) => [opfsFileSystem(folder), blobFileSystem(files)];
`;

/** @param {boolean} hasDom @param {boolean} hasAdapters */
function program(hasDom, hasAdapters) {
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

/** @param {string} folder with the packages installed @param {string} tools where the compilers are @returns {import("./runtimes.mjs").Row[]} */
export function typeRows(folder, tools) {
  const types = { types: ["node"], typeRoots: [join(tools, "node_modules/@types")] };
  const lib = ["es2023", "dom", "esnext.disposable"];
  const strict = { target: "es2022", lib, strict: true, noEmit: true, skipLibCheck: false, ...types };
  return VERSIONS.flatMap((version) =>
    FORMS.filter(({ from, to }) => Number(version) >= from && Number(version) <= to).map(({ form, file, options }) => ({
      name: `TypeScript ${version}, ${form}`,
      run: async () => {
        const project = join(folder, "types", `${version}-${form}`.replace(/\W+/g, "-"));
        mkdirSync(project, { recursive: true });
        writeFileSync(join(project, file), program(!("lib" in options), "skipLibCheck" in options));
        const config = { compilerOptions: { ...strict, ...options }, files: [file] };
        writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config));
        const compiler = join(tools, `node_modules/typescript-${version}/bin/tsc`);
        const { ok, stdout, stderr } = await start(process.execPath, [compiler, "-p", project], {
          quiet: true,
          cwd: folder,
        });
        return { verdict: ok ? "compiles" : undefined, line: `${stdout}${stderr}`.trim() };
      },
    })),
  );
}
