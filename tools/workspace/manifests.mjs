/**
 * `npm run manifests` writes what the published packages' manifests, licences and READMEs share or derive. So `npm pack` in any
 * package's folder gives what a release gives.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { completed } from "./manifest.mjs";
import { optimizerPackages, publicPackages } from "./packages.mjs";
import { platformPackages } from "./platforms.mjs";
import { forReaders } from "./readme-pages.mjs";
import { root, run } from "./run.mjs";

/** @typedef {import("./packages.mjs").Manifest} Manifest */

const read = (/** @type {string} */ path) => readFileSync(join(root, path), "utf8");

/** What a `^` range keeps fixed: 1 of 1.2.3, 0.2 of 0.2.3. @param {string} version */
const seriesOf = (version) => version.split(".", version.startsWith("0.") ? 2 : 1).join(".");

/** `@opt/optim` depends on each optimizer. A range that allows the version stays. @param {Manifest} manifest */
function withOptimizers({ dependencies = {}, ...others }) {
  const ranges = optimizerPackages().map(({ name, version }) => {
    const range = dependencies[name] ?? "";
    return [name, seriesOf(range.slice(1)) === seriesOf(version) ? range : `^${version}`];
  });
  return { ...others, dependencies: Object.fromEntries(ranges) };
}

/** What the manifest of one package depends on, beside what its author writes. @param {Manifest} manifest */
function withOurs(manifest) {
  if (manifest.name === "@opt/optim") return withOptimizers(manifest);
  const binaries = platformPackages().filter(({ consumer }) => consumer === manifest.name);
  if (binaries.length === 0) return manifest;
  const ours = Object.fromEntries(binaries.map(({ name }) => [name, manifest.version]));
  return { ...manifest, optionalDependencies: { ...manifest.optionalDependencies, ...ours } };
}

/** Every file that is written here, with its text. */
function derived() {
  const workspace = JSON.parse(read("package.json"));
  const license = read("LICENSE");
  const packages = publicPackages();
  const filesOf = (/** @type {string} */ folder, /** @type {Manifest} */ manifest, /** @type {string} */ readme) => {
    const directory = relative(root, folder).split(sep).join("/");
    return [
      [`${directory}/package.json`, `${JSON.stringify(completed(manifest, directory, workspace), null, 2)}\n`],
      [`${directory}/LICENSE`, license],
      [`${directory}/README.md`, readme],
    ];
  };
  const files = [
    ...packages.flatMap(({ folder, ...manifest }) => {
      const readme = forReaders(readFileSync(join(folder, "README.md"), "utf8"), workspace.homepage);
      return filesOf(folder, withOurs(manifest), readme);
    }),
    ...platformPackages().flatMap(({ folder, consumer, missing: _, ...manifest }) => {
      const version = packages.find(({ name }) => name === consumer)?.version ?? manifest.version;
      const readme = `# ${manifest.name}\n\n${manifest.description}.\n\nIt comes with \`${consumer}\` where it fits.\n`;
      return filesOf(folder, { ...manifest, version }, readme);
    }),
  ];
  return /** @type {[path: string, text: string][]} */ (files);
}

/** Those that differ. Biome formats manifests, so only what they say counts. */
function stale() {
  const says = (/** @type {string} */ path, /** @type {string} */ text) =>
    path.endsWith(".json") ? JSON.stringify(JSON.parse(text)) : text;
  return derived().filter(
    ([path, text]) => !existsSync(join(root, path)) || says(path, read(path)) !== says(path, text),
  );
}

export function checkManifests() {
  const paths = stale().map(([path]) => path);
  if (paths.length > 0) throw new Error(`[manifests] stale: ${paths.join(", ")}. Run npm run manifests.`);
}

export function writeManifests() {
  for (const [path, text] of stale()) writeFileSync(join(root, path), text);
  const manifests = derived().flatMap(([path]) => (path.endsWith(".json") ? [path] : []));
  const { ok, stderr } = run("biome", ["format", "--write", ...manifests], { quiet: true });
  if (!ok) throw new Error(`[manifests] Biome cannot format the manifests: ${stderr}`);
}

if (process.argv[1] === import.meta.filename) writeManifests();
