/** Bundles the packages and the workers of samples and demos, straight from source: the site asks no other server. */
import { build } from "esbuild";
import { publicPackages } from "../workspace/packages.mjs";
import { root } from "../workspace/run.mjs";

/** Packages that no page can use. */
const NOT_IN_PAGES = /^@opt\/(kernels-cpu|kernels-cuda|collectives-mpi|parallel|tfjs|jax-js)$/;

/** @param {string} out a folder */
export async function bundlePackages(out) {
  const entries = publicPackages()
    .filter(({ name }) => !NOT_IN_PAGES.test(name))
    .flatMap(({ name, folder, exports = {} }) =>
      Object.entries(exports).flatMap(([entry, target]) => {
        const source = /** @type {Record<string, string> | string} */ (target);
        if (typeof source === "string") return [];
        return [{ out: name.replace("@opt/", "") + entry.slice(1), in: `${folder}/${source["@opt/source"]}` }];
      }),
    );
  await build({
    entryPoints: [
      ...entries,
      { out: "worker", in: `${root}docs/.vitepress/worker.ts` },
      ...["race", "same-run", "leaderboard", "gpt", "fine-tune", "checkpoint"].map((name) => ({
        out: `demos/${name}`,
        in: `${root}docs/.vitepress/demos/${name}.ts`,
      })),
    ],
    define: { OPT_PACKAGES: JSON.stringify(entries.map(({ out }) => `@opt/${out}`)) },
    loader: { ".jsonl": "text", ".safetensors": "binary" },
    outdir: out,
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    conditions: ["@opt/source"],
    external: ["node:*", "webgpu"],
    minify: true,
    keepNames: true,
    chunkNames: "chunks/[hash]",
    logLevel: "error",
  });
}
