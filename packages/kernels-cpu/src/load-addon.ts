/** Loads the native addon: the binary of a platform's package. */
import { createRequire } from "node:module";
import { environmentVariable, loadBinary, platformName } from "@opt/core/backend";
import type { Addon } from "./addon";
import { commandFormat } from "./commands";

const require = createRequire(import.meta.url);

/**
 * Loads the binary of a platform from its package. `OPT_CPU_BINARY` names a file instead.
 *
 * @throws OptError DEVICE_UNAVAILABLE naming the package that is missing, or of another version than this one
 */
export function loadAddon(platform = platformName(), binary = environmentVariable("OPT_CPU_BINARY")): Addon {
  const name = `@opt/kernels-cpu-${platform}`;
  return loadBinary<Addon>({
    require,
    path: binary || name,
    where: "cpu",
    version: commandFormat(),
    versionOf: (addon) => addon.commandFormat?.(),
    install: `Install ${name} where it exists (npm leaves it out with --omit=optional); device "wasm" of @opt/kernels-wasm serves without it.`,
    build: "npx nx native native-cpu",
  });
}
