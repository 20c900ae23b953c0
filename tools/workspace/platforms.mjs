/**
 * The packages that hold one platform's binaries: native/<device>/npm/<platform>. They are no workspaces, because npm rejects
 * workspaces made for other platforms. Each has the version of the package that needs it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { NATIVE } from "./nx/graph.mjs";
import { root } from "./run.mjs";

/** What a platform's package has, by the package that needs it. @type {Readonly<Record<string, readonly string[]>>} */
const BINARIES = {
  "@opt/kernels-cpu": ["opt_cpu.node"],
  "@opt/kernels-cuda": ["opt_cuda.node", "kernels/rules.fatbin"],
  "@opt/collectives-mpi": ["opt_mpi.node"],
};

/**
 * Each with the package that needs it, and with its binaries that were not built.
 * @returns {(import("./packages.mjs").Package & { consumer: string, missing: string[] })[]}
 */
export function platformPackages() {
  return Object.entries(NATIVE).flatMap(([consumer, project]) => {
    const npm = join(root, project.replace("-", "/"), "npm");
    return readdirSync(npm).map((platform) => {
      const folder = join(npm, platform);
      return {
        ...JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
        ...{ folder, consumer, missing: (BINARIES[consumer] ?? []).filter((file) => !existsSync(join(folder, file))) },
      };
    });
  });
}
