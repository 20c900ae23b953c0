/** A registry of npm packages on this machine alone, for rehearsals: Verdaccio, on a Node that npx brings (it needs 22 or newer). */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { start } from "../run.mjs";

/** Where one can be started: an address that nobody listens at now. @returns {Promise<string>} host:port/ */
export function freeAddress() {
  return new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(`127.0.0.1:${typeof address === "object" && address ? address.port : 0}/`));
    });
  });
}

/** What makes npm, pnpm and yarn take @opt's packages from it. @param {string} address */
export const settingsFor = (address) => `@opt:registry=http://${address}\n//${address}:_authToken=rehearsal\n`;

/** Packages of @opt alone, from nowhere else. @param {string} folder */
const configuration = (folder) => `storage: ${folder}/storage
uplinks: {}
packages:
  "@opt/*": { access: $all, publish: $all, unpublish: $all }
max_body_size: 500mb
log: { type: file, path: ${folder}/log.txt, level: warn }
server: { keepAliveTimeout: 5 }
`;

/**
 * @param {string} folder an empty one, for all that it needs and keeps
 * @param {string} address as `freeAddress` gives it
 * @returns {Promise<{ stop(): void }>} when it answers
 */
export async function startRegistry(folder, address) {
  mkdirSync(folder, { recursive: true });
  // It asks for node-fetch by a tag that mirrors of npm's registry may lack.
  writeFileSync(join(folder, "package.json"), '{ "private": true, "overrides": { "node-fetch": "2.7.0" } }');
  const env = { npm_config_ignore_scripts: "false", npm_config_loglevel: "error" };
  const options = ["--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", "--force"];
  const [node, installed] = await Promise.all([
    start("npx", ["-y", "node@24", "-p", "process.execPath"], { quiet: true, env, minutes: 5 }),
    start("npm", ["install", ...options, "verdaccio@6"], { quiet: true, cwd: folder, minutes: 5 }),
  ]);
  if (!node.ok || !installed.ok) throw new Error(`[registry] npm cannot get it: ${node.stderr}${installed.stderr}`);
  const file = join(folder, "config.yaml");
  writeFileSync(file, configuration(folder));
  const program = join(folder, "node_modules/verdaccio/bin/verdaccio");
  const child = spawn(node.stdout.trim(), [program, "--config", file, "--listen", address.slice(0, -1)], {
    stdio: "ignore",
  });
  const stop = () => child.kill();
  process.once("exit", stop);
  for (let tries = 0; tries < 300; tries++) {
    if (
      await fetch(`http://${address}-/ping`).then(
        ({ ok }) => ok,
        () => false,
      )
    ) {
      return { stop };
    }
    if (child.exitCode !== null) break;
    await sleep(200);
  }
  stop();
  throw new Error("[registry] Verdaccio does not answer.");
}
