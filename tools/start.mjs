/** `npm start`: sets up what this needs, and trains on MNIST, from source. What follows `npm start --` goes to the training program. */
import { run } from "./run.mjs";
import { setupToRun } from "./setup.mjs";

/**
 * npm keeps flags written without `--` to itself: `--device=wasm` becomes npm_config_device=wasm, and `--device wasm`
 * becomes npm_config_device=true and a bare word.
 * @param {string[]} args
 * @returns {string[]}
 */
function recoverFlags(args) {
  const flags = ["device", "optimizer", "epochs"].filter((flag) => process.env[`npm_config_${flag}`]);
  if (flags.length === 0) return args;
  const words = args.filter((arg) => !arg.startsWith("-"));
  const bare = flags.filter((flag) => process.env[`npm_config_${flag}`] === "true");
  const recovered = flags
    .filter((flag) => !bare.includes(flag))
    .map((flag) => `--${flag}=${process.env[`npm_config_${flag}`]}`);
  // Only epochs is a number; of two other words nobody can tell which is which, because npm loses their order.
  const number = words.findIndex((word) => /^\d+$/.test(word));
  if (bare.includes("epochs") && number >= 0) {
    recovered.push(`--epochs=${words.splice(number, 1)}`);
    bare.splice(bare.indexOf("epochs"), 1);
  }
  if (bare.length !== words.length || bare.length > 1) {
    console.error("[npm start] npm took these flags for its own. Write: npm start -- --device wasm --epochs 1");
    process.exit(2);
  }
  return [...recovered, ...bare.map((flag, index) => `--${flag}=${words[index]}`)];
}

const args = recoverFlags(process.argv.slice(2));
console.log("Opt: set-up where it is needed, then MNIST with each optimizer, and a report.");
const binary = await setupToRun();
/** @type {Record<string, string>} */
const env = binary && !process.env.OPT_CPU_BINARY ? { OPT_CPU_BINARY: binary } : {};
const program = ["--conditions=@opt/source", "--import", "tsx", "e2e/mnist/src/main.ts"];
process.exitCode = run(process.execPath, [...program, ...args], { env }).status;
