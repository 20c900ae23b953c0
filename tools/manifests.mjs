/**
 * What every published folder repeats: the repository of the workspace, its licence, what `@opt/optim` depends on, and for a platform's binaries a README.
 * `node tools/manifests.mjs` writes it, `npm test` checks it. The repository is named once, in the workspace's own package.json.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { isOptimizer, optimizerPackages, publicPackages } from "./packages.mjs";
import { root } from "./run.mjs";

/** The folders of the packages that hold one platform's binaries. */
export function platformFolders() {
  return ["cpu", "cuda", "mpi"].flatMap((device) => {
    const npm = join(root, "native", device, "npm");
    return readdirSync(npm).map((platform) => join(npm, platform));
  });
}

/** @param {string} path */
const readText = (path) => (existsSync(path) ? readFileSync(path, "utf8") : undefined);

/** What a `^` range keeps fixed: 1 of 1.2.3, 0.2 of 0.2.3. @param {string} version */
const seriesOf = (version) => version.split(".", version.startsWith("0.") ? 2 : 1).join(".");

/** What `@opt/optim` exports again. A range that allows the version stays. @param {Record<string, string>} ranges */
function everyOptimizer(ranges) {
  return Object.fromEntries(
    optimizerPackages().map(({ name, version }) => {
      const range = ranges[name] ?? "";
      return [name, seriesOf(range.slice(1)) === seriesOf(version) ? range : `^${version}`];
    }),
  );
}

/** What a folder must hold. @param {string} folder @param {boolean} binaries @returns {[string, string][]} files and their texts */
function expected(folder, binaries) {
  const workspace = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { repository: _, ...manifest } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (manifest.name === "@opt/optim") manifest.dependencies = everyOptimizer(manifest.dependencies);
  const { name, version, description, keywords, license, ...rest } = manifest;
  const directory = relative(root, folder).replaceAll(sep, "/");
  const repository = workspace.repository && { repository: { ...workspace.repository, directory } };
  const ordered = { name, version, description, ...(keywords && { keywords }), license, ...repository, ...rest };
  const [consumer = ""] = /@opt\/(kernels-cpu|kernels-cuda|collectives-mpi)/.exec(name) ?? [];
  const otherwise =
    consumer === "@opt/collectives-mpi"
      ? "`npx opt-run` of `@opt/parallel` serves on one machine"
      : "the device `wasm` of `@opt/kernels-wasm` serves";
  const readme = `# ${name}

${description}. \`${consumer}\` asks for it, and npm installs it where it fits: there is nothing to import here.
On platforms without such a package, ${otherwise}.
`;
  return [
    [join(folder, "package.json"), `${JSON.stringify(ordered, null, 2)}\n`],
    [join(folder, "LICENSE"), readFileSync(join(root, "LICENSE"), "utf8")],
    ...(binaries ? /** @type {[string, string][]} */ ([[join(folder, "README.md"), readme]]) : []),
  ];
}

function stale() {
  const folders = [
    // An optimizer's is made whole when it is packed.
    ...publicPackages()
      .filter((each) => !isOptimizer(each))
      .map(({ folder }) => expected(folder, false)),
    ...platformFolders().map((folder) => expected(folder, true)),
  ];
  return folders.flat().filter(([path, text]) => readText(path) !== text);
}

/** @throws naming the files that are not what they should be */
export function checkManifests() {
  const files = stale().map(([path]) => relative(root, path));
  if (files.length > 0) throw new Error(`${files.join(", ")}: not as tools/manifests.mjs writes them. Run it.`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const [path, text] of stale()) {
    writeFileSync(path, text);
    console.log(`manifests: wrote ${relative(root, path)}`);
  }
}
