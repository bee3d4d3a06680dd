"""A program of its own: samples of a node's counters, kept until they are asked for.

What it does: reads memory, load, temperatures, clocks, power and network counters of the kernel once a period and at every
mark, and prints them as JSON Lines when it is told to. What it does not do: judge, or write anything by itself. Rules kept: it
ends when its standard input closes; it holds a bounded number of samples, and beyond that keeps the one of each two with less
memory left; what the kernel does not show is left out. Imports the standard library alone and is run with ``python -I -S -c``.

usage: sampler PERIOD_SECONDS On its standard input: ``mark WORDS`` takes a sample that carries the words, ``take`` prints all
since the last ``take``. Each is answered by lines and a full stop.
"""

import ctypes
import json
import os
import select
import sys
import time
from typing import Any

Sample = dict[str, Any]
MOST = 20_000
# Temperature of the chip in °C, power in mW, clock of the processors in MHz.
QUESTIONS = (("nvmlDeviceGetTemperature", 0), ("nvmlDeviceGetPowerUsage",), ("nvmlDeviceGetClockInfo", 1))
KEPT = ("MemAvailable", "MemFree", "SwapTotal", "SwapFree")


def read(path: str) -> str:
    """The text of a file of the kernel, or nothing."""
    try:
        with open(path, encoding="latin-1") as file:  # noqa: PTH123 - no Path in a program this small
            return file.read()
    except OSError:
        return ""


def number(path: str) -> "int | None":
    """The whole number in a file of the kernel, or None."""
    text = read(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None


def find() -> "dict[str, list[str]]":
    """The files of the sensors that are there: temperatures, powers, clocks."""
    found: dict[str, list[str]] = {"temp": [], "power": [], "clock": []}
    for top in ("/sys/class/thermal", "/sys/class/hwmon"):
        for folder in listed(top):
            for name in listed(top + "/" + folder):
                path = top + "/" + folder + "/" + name
                if name == "temp" or (name.startswith("temp") and name.endswith("_input")):
                    found["temp"].append(path)
                elif name.startswith("power") and name.endswith(("_input", "_average")):
                    found["power"].append(path)
    for cpu in listed("/sys/devices/system/cpu"):
        path = "/sys/devices/system/cpu/" + cpu + "/cpufreq/scaling_cur_freq"
        if cpu.startswith("cpu") and read(path):
            found["clock"].append(path)
    return found


class Accelerators:
    """NVIDIA's accelerators through the library of their driver, where there is one: no process is started for a sample."""

    def __init__(self, name: str = "libnvidia-ml.so.1") -> None:
        self.handles: list[ctypes.c_void_p] = []
        try:
            self.library = ctypes.CDLL(name)
            count = ctypes.c_uint()
            if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
                return
        except (OSError, AttributeError):
            return
        for index in range(count.value):
            handle = ctypes.c_void_p()
            if not self.library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)):
                self.handles.append(handle)

    def ask(self, function: str, *words: int) -> "list[int]":
        """What a function that fills in one number says of each accelerator that answers it."""
        found = []
        for handle in self.handles:
            value = ctypes.c_uint()
            call = getattr(self.library, function, None)
            if call is not None and call(handle, *map(ctypes.c_uint, words), ctypes.byref(value)) == 0:
                found.append(value.value)
        return found


def listed(folder: str) -> "list[str]":
    """The names in a folder, or none."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - as above
    except OSError:
        return []


def sample(sensors: "dict[str, list[str]]", accelerators: Accelerators) -> Sample:
    """One sample: bytes, loads, degrees, watts, megahertz."""
    taken: Sample = {"t": round(time.monotonic(), 3)}
    for line in read("/proc/meminfo").split("\n"):
        name, _, rest = line.partition(":")
        if name in KEPT:
            taken[name] = int(rest.split()[0]) * 1024
    load = read("/proc/loadavg").split()
    if load:
        taken["load1"] = float(load[0])
    heat = [value / 1000 for value in map(number, sensors["temp"]) if value is not None and -50_000 <= value <= 200_000]
    hot, drawn, ticks = (accelerators.ask(*question) for question in QUESTIONS)
    heat += map(float, hot)
    if heat:
        taken["temperature"] = max(heat)
    watts = [value / 1e6 for value in map(number, sensors["power"]) if value is not None] + [one / 1000 for one in drawn]
    if watts:
        taken["power"] = round(sum(watts), 3)
    clocks = [value / 1000 for value in map(number, sensors["clock"]) if value is not None]
    if clocks:
        taken["clock"] = round(sum(clocks) / len(clocks), 1)
    if ticks:
        taken["accelerator_clock"] = min(ticks)
    received = sent = 0
    for line in read("/proc/net/dev").split("\n")[2:]:
        name, _, rest = line.partition(":")
        words = rest.split()
        if name.strip() != "lo" and len(words) >= 9:
            received, sent = received + int(words[0]), sent + int(words[8])
    taken["rx"], taken["tx"] = received, sent
    return taken


def thinned(samples: "list[Sample]") -> "list[Sample]":
    """Half of the samples: of each two the one with less memory left; marks all stay."""
    kept: list[Sample] = []
    for one in samples:
        last = kept[-1] if kept else None
        if last is None or "mark" in one or "mark" in last or last.get("pair"):
            kept.append(one)
            continue
        lower = one if one.get("MemAvailable", 0) < last.get("MemAvailable", 0) else last
        kept[-1] = {**lower, "pair": 1}
    for one in kept:
        one.pop("pair", None)
    return kept


def main(period: float) -> int:
    """Sample until standard input closes."""
    sensors, accelerators = find(), Accelerators()
    samples: list[Sample] = []
    due = time.monotonic()
    rest = b""
    while True:
        wait = due - time.monotonic()
        if wait <= 0:
            samples.append(sample(sensors, accelerators))
            due = max(due + period, time.monotonic())
            if len(samples) > MOST:
                samples, period = thinned(samples), period * 2
            continue
        ready, _, _ = select.select([0], [], [], wait)
        if not ready:
            continue
        data = os.read(0, 65536)
        if not data:
            return 0
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            words = line.decode("utf-8", "replace")
            if words.startswith("mark "):
                samples.append(dict(sample(sensors, accelerators), mark=words[5:]))
            else:
                cpu = {"cpu_s": round(time.process_time(), 4), "period_s": period}
                sys.stdout.write("".join(json.dumps(one) + "\n" for one in [*samples, cpu]))
                samples = []
            sys.stdout.write(".\n")
            sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
