/**
 * The ranges of core that packages ask for as a peer. `node tools/release/peers.mjs` types each package against the lowest core that
 * it allows, where that is another than the workspace's and the registry has it.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { publicPackages } from "../packages.mjs";
import { root, start } from "../run.mjs";
import { admits, lowest, widened } from "./semver.mjs";

const CORE = "@opt/core";

/** @typedef {{ name: string, version: string, folder: string, range: string }} Dependent */

/** @returns {Dependent[]} */
export function dependents() {
  return publicPackages().flatMap((each) => {
    const range = each.peerDependencies?.[CORE];
    return range === undefined ? [] : [{ ...each, range }];
  });
}

/** The packages whose ranges must change before core gets a version, with their new ranges. @param {string} version */
export function outgrown(version) {
  return dependents()
    .filter(({ range }) => !admits(range, version))
    .map((each) => ({ ...each, range: widened(each.range, version) }));
}

/** Types the sources of packages with an older core in place of the workspace's. @param {string} version @param {readonly Dependent[]} packages */
async function checkAgainst(version, packages) {
  const folder = mkdtempSync(join(tmpdir(), "opt-lowest-core-"));
  try {
    writeFileSync(join(folder, "package.json"), '{ "private": true }');
    const install = [
      "install",
      "--prefix",
      folder,
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      `${CORE}@${version}`,
    ];
    const installed = await start("npm", install, { quiet: true, cwd: root });
    if (!installed.ok) return `${CORE}@${version} is not on the registry`;
    const older = join(folder, "node_modules", CORE, "dist");
    const problems = [];
    for (const { name, folder: source, range } of packages) {
      const project = join(folder, name.replace("/", "-"));
      mkdirSync(project);
      const config = {
        extends: join(root, "tsconfig.base.json"),
        compilerOptions: {
          typeRoots: [join(root, "node_modules/@types")],
          paths: { [CORE]: [join(older, "index.d.ts")], [`${CORE}/*`]: [join(older, "*/index.d.ts")] },
        },
        include: [join(source, "src")],
        exclude: ["**/*.test.ts", "**/*.soak.ts", "**/testing/**", "**/generate/**"],
      };
      writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config));
      const typed = await start("tsc", ["-p", project], { quiet: true });
      if (!typed.ok) problems.push(`${name} asks for ${CORE} ${range} and needs a newer one:\n${typed.stdout}`);
    }
    if (problems.length > 0) throw new Error(`${problems.join("\n")}Raise the range in peerDependencies.`);
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @returns {Promise<string | undefined>} why nothing was checked, if so */
export async function checkLowestPeers() {
  const own = publicPackages().find(({ name }) => name === CORE)?.version;
  /** @type {Map<string, Dependent[]>} */
  const byVersion = new Map();
  for (const each of dependents()) {
    const version = lowest(each.range);
    if (version !== own) byVersion.set(version, [...(byVersion.get(version) ?? []), each]);
  }
  if (byVersion.size === 0) return "every package asks for the core of the workspace";
  const reasons = await Promise.all([...byVersion].map(([version, packages]) => checkAgainst(version, packages)));
  return reasons.every((reason) => reason !== undefined) ? reasons.join("; ") : undefined;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const reason = await checkLowestPeers();
  console.log(
    reason ? `peers: nothing to check, ${reason}` : "peers: every package works with the lowest core it allows",
  );
}
