/** How every package is built for its users: ES modules, their declarations, and maps that name the sources beside them. */
import { defineConfig, type Options } from "tsup";

/** @param options what a package asks for beyond that */
export const buildOf = (entry: Options["entry"], options: Options = {}) =>
  defineConfig({
    entry,
    format: "esm",
    target: "es2022",
    dts: {
      compilerOptions: { noCheck: true }, // checked by `npm run typecheck`
      banner: '/// <reference lib="esnext.disposable" />', // Symbol.dispose, which es2022 lacks
    },
    sourcemap: true,
    // The sources lie beside it in the package: maps name them and do not repeat them.
    esbuildOptions: (esbuild) => {
      esbuild.sourcesContent = false;
    },
    clean: true,
    ...options,
  });
