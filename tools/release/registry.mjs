/** A registry of npm packages on this machine alone, for rehearsals: Verdaccio, on a Node that npx brings (it needs 22 or newer). */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeOf } from "../packages.mjs";
import { start } from "../run.mjs";

/** Where one can be started: an address that nobody listens at now. @returns {Promise<string>} host:port/ */
function freeAddress() {
  return new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(`127.0.0.1:${typeof address === "object" && address ? address.port : 0}/`));
    });
  });
}

/** Packages of @opt alone, from nowhere else. @param {string} folder */
const configuration = (folder) => `storage: ${folder}/storage
auth: { htpasswd: { file: ${folder}/htpasswd } }
uplinks: {}
packages:
  "@opt/*": { access: $all, publish: $all, unpublish: $all }
max_body_size: 500mb
log: { type: file, path: ${folder}/log.txt, level: warn }
server: { keepAliveTimeout: 5 }
`;

/** Signs a user up. @param {string} address @returns {Promise<string>} a token */
async function tokenOf(address) {
  const name = "rehearsal";
  const response = await fetch(`http://${address}-/user/org.couchdb.user:${name}`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name, password: "a-rehearsal" }),
  });
  const { token } = /** @type {{ token?: string }} */ (await response.json());
  if (token === undefined) throw new Error(`[registry] nobody can sign up: ${response.status}.`);
  return token;
}

/**
 * @param {string} folder an empty one, for all that it needs and keeps
 * @returns {Promise<{ address: string, npmrc: string, stop(): void }>} when it answers; with `npmrc`, npm, pnpm and yarn take @opt's packages from it
 */
export async function startRegistry(folder) {
  const address = await freeAddress();
  mkdirSync(folder, { recursive: true });
  // It asks for node-fetch by a tag that mirrors of npm's registry may lack.
  writeFileSync(join(folder, "package.json"), '{ "private": true, "overrides": { "node-fetch": "2.7.0" } }');
  const options = ["--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", "--force"];
  const [node, installed] = await Promise.all([
    nodeOf("24"),
    start("npm", ["install", ...options, "verdaccio@6"], { quiet: true, cwd: folder, minutes: 5 }),
  ]);
  if (!node || !installed.ok) throw new Error(`[registry] npm cannot get it: ${installed.stderr}`);
  const file = join(folder, "config.yaml");
  writeFileSync(file, configuration(folder));
  const program = join(folder, "node_modules/verdaccio/bin/verdaccio");
  const child = spawn(node, [program, "--config", file, "--listen", address.slice(0, -1)], {
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
      const npmrc = `@opt:registry=http://${address}\n//${address}:_authToken=${await tokenOf(address)}\n`;
      return { address, npmrc, stop };
    }
    if (child.exitCode !== null) break;
    await sleep(200);
  }
  stop();
  throw new Error("[registry] Verdaccio does not answer.");
}
