/** Simulates one history for each seed from the first on, and says how far it is, until it is stopped: `simulate <first> [<count>]`. */
import { runHistory } from "../simulator/history";
import { told } from "../simulator/seeds";

const [, , begin = "1", count = "Infinity"] = process.argv;
const first = Number(begin);
let [violations, events] = [0, 0];
for (let histories = 1; histories <= Number(count); histories++) {
  const history = await runHistory(first + histories - 1);
  events += history.events;
  if (history.violation !== undefined) {
    violations++;
    console.log(told(history));
  }
  if (histories % 1000 === 0 || histories === Number(count)) {
    console.log(`${histories} histories from seed ${first}, ${events} events, ${violations} violations`);
  }
}
process.exitCode = violations > 0 ? 1 : 0;
