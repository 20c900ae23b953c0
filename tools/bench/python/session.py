"""The other end of process-session.ts: one line of JSON each way. It needs neither torch nor JAX."""
import json
import os
import sys
import time

THREADS = int(os.environ.get("OPT_NUM_THREADS", os.cpu_count()))


class Unavailable(Exception):
    """Says why a work cannot run on this machine; the report names the reason."""


def serve(open_work):
    """`open_work(request)` returns what runs a number of steps to their end, what gives at most a number of result values and, if it measures it, what gives the peak of memory in bytes."""
    run = result = None
    peak = []
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        if request["command"] == "open":
            try:
                run, result, *peak = open_work(request)
            except Unavailable as reason:
                answer["error"] = str(reason)
        elif request["command"] == "run":
            start = time.perf_counter()
            try:
                run(request["steps"])
            except Unavailable as reason:
                answer["error"] = str(reason)
            answer["milliseconds"] = (time.perf_counter() - start) * 1000
            for measure in peak:
                answer["peakBytes"] = measure()
        else:
            answer["values"] = result(request["count"])
        print(json.dumps(answer), flush=True)
