/** `npm start`: sets up what this needs, and trains on MNIST, from source. What follows `npm start --` goes to the training program. */
import { run } from "./run.mjs";
import { setupToRun } from "./setup.mjs";

// npm keeps flags written without `--` to itself: `--device=wasm` becomes npm_config_device.
if (["device", "optimizer", "epochs"].some((flag) => process.env[`npm_config_${flag}`])) {
  console.error("[npm start] npm took these flags for its own. Write: npm start -- --device wasm --epochs 1");
  process.exit(2);
}
console.log("Opt: set-up where it is needed, then MNIST with each optimizer, and a report.");
const binary = await setupToRun();
/** @type {Record<string, string>} */
const env = binary && !process.env.OPT_CPU_BINARY ? { OPT_CPU_BINARY: binary } : {};
const program = ["--conditions=@opt/source", "--import", "tsx", "e2e/mnist/src/main.ts"];
process.exitCode = run(process.execPath, [...program, ...process.argv.slice(2)], { env }).status;
