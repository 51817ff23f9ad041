#!/usr/bin/python3
"""What the page makes of answers that a real daemon gives seldom or not at all: none, errors, what
does not work, what others did to limits. In a real browser, in real time, against a stub."""

import datetime
import json
import shutil
import sys
import tempfile
import time
import unittest

import browser
from stub_daemon import HANGS, StubDaemon

GIB = 1 << 30
EVERY, PATIENCE = 2, 12  # seconds: everyMs and answerMs of page.js
MOST_EXPLAINED = 5
NOW = int(time.time())
# The page's clock says some minutes past twelve, so that no test sees midnight pass.
HOURS_EAST = 12 - time.gmtime(NOW).tm_hour
EARLIER = NOW - 3 * 86400


def status(**changed):
    return {"mode": "enforce", "uptime_seconds": 100, "degraded": [], "kill_switch": False,
            "standing_down": "", "companion_alive": True, "changed_anything": True,
            "sources": [{"name": "PSI", "present": True, "detail": ""}],
            "store": {"state": "ok", "dropped_samples": 0, "dropped_entries": 0, "damaged": 0,
                      "quarantined": None},
            "containers": {"observe": 0, "advise": 0, "enforce": 1, "hands_off": 0},
            "saved_now": {"cpu_cores": 0, "memory_bytes": 0}, **changed}


def container(name="web", **changed):
    return {"path": f"/{name}", "name": name, "mode": "enforce", "paused": False, "hands_off": "",
            "engine": "docker", "image": "", "blocked_by": {"cpu": None, "memory": None},
            "phase": {"state": "unknown", "letter": "-", "index": None}, "next": [],
            "usage": {"cpu_cores": 0.25, "memory_need_bytes": GIB, "memory_current_bytes": GIB},
            "limits": {"cpu_cores": 1, "memory_bytes": 2 * GIB},
            "original": {"cpu_cores": 1, "memory_bytes": 2 * GIB},
            "saving": {"cpu_cores": 0, "memory_bytes": 0}, **changed}


def events(*times_and_sentences, **more):
    return {"events": [{"time": at, "sentence": words} for at, words in times_and_sentences],
            "earlier": None, **more}


def explanation(sentence, *times_and_sentences):
    """The newest decision comes first, and is what the sentence reports."""
    decisions = [(NOW, sentence), *times_and_sentences]
    return {"sentence": sentence, "decisions": [{"decision": {"time": at}, "sentence": words}
                                                for at, words in decisions]}


def error(status_code, text):
    return status_code, json.dumps({"schema": 2, "error": {"exit": 1, "text": text}})


def clock(seconds, form="%H:%M:%S"):
    zone = datetime.timezone(datetime.timedelta(hours=HOURS_EAST))
    return datetime.datetime.fromtimestamp(seconds, zone).strftime(form)


def iso(seconds):
    whole = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return whole.strftime("%Y-%m-%dT%H:%M:%S")


def text_of(selector):
    return f"document.querySelector({json.dumps(selector)}).textContent"


def texts_of(selector):
    return f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"


STALE = "document.body.classList.contains('stale')"
ANSWERS = text_of("[role=status]")


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cgphase-web-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.browser = browser.Browser(cls.folder)
        cls.addClassCleanup(cls.browser.close)
        cls.browser.call("Emulation.setLocaleOverride", locale="en-GB")
        cls.browser.call("Emulation.setTimezoneOverride", timezoneId=f"Etc/GMT{-HOURS_EAST:+d}")

    def setUp(self):
        self.browser.exceptions.clear()
        self.stub = StubDaemon()
        self.addCleanup(self.stub.close)
        self.addCleanup(self.browser.open, "about:blank")  # asks the stub no more
        self.addCleanup(lambda: self.assertEqual(self.browser.exceptions, []))
        self.answers = self.stub.answers
        self.answers.update(status=status(), list={"containers": [container()]}, events=events(),
                            explain=explanation("because"))

    def show(self):
        """Opens the page, and waits until it has asked all that it asks."""
        self.browser.open(self.stub.address)
        self.browser.wait(f"{ANSWERS} === 'connected to the daemon'")
        self.browser.wait("!document.getElementById('quiet').hidden || "
                          "document.getElementById('events').children.length > 0 || "
                          f"{text_of('#untold')} !== ''")

    def value(self, expression):
        return self.browser.value(expression)

    def await_rounds(self, count):
        """Until the page asked for the status `count` times more, and was answered."""
        enough = len(self.stub.times("list")) + count + 1
        end = time.monotonic() + 30
        while len(self.stub.times("list")) < enough and time.monotonic() < end:
            time.sleep(0.05)
        self.assertGreaterEqual(len(self.stub.times("list")), enough)

    def open_cards(self):
        self.value("for (const why of document.querySelectorAll('details')) why.open = true")

    # --- whether the daemon answers ---

    def test_a_daemon_that_takes_a_question_and_never_answers_makes_the_page_stale(self):
        for verb in ("status", "list"):
            with self.subTest(verb):
                self.answers.update(status=status(), list={"containers": [container()]})
                self.show()
                self.assertFalse(self.value(STALE))
                self.stub.hung.clear()
                self.answers[verb] = HANGS
                self.browser.wait(STALE, EVERY + PATIENCE + 10)
                waited = time.monotonic() - self.stub.hung[0]
                # Not before a slow daemon had its ten seconds.
                self.assertGreater(waited, PATIENCE - 1)
                self.assertIn("the daemon does not answer: ", self.value(ANSWERS))

    def test_a_page_that_was_stale_is_no_more_once_the_daemon_answers(self):
        self.show()
        self.answers["status"] = error(503, "the daemon is busy")
        self.browser.wait(STALE)
        self.assertEqual(self.value(ANSWERS), "the daemon does not answer: the daemon is busy")
        self.answers["status"] = status()
        self.browser.wait(f"!{STALE} && {ANSWERS} === 'connected to the daemon'")

    def test_a_reply_that_is_no_json_is_told_by_its_status(self):
        self.show()
        self.answers["status"] = (502, "<html>Bad Gateway</html>")
        self.browser.wait(STALE)
        self.assertEqual(self.value(ANSWERS), "the daemon does not answer: HTTP 502")

    def test_only_whether_it_answers_is_read_aloud_and_only_when_that_changes(self):
        self.show()
        self.assertEqual(self.value(texts_of("[role=status], [aria-live]")),
                         ["connected to the daemon"])
        self.value("window.spoken = 0; new MutationObserver(() => ++window.spoken).observe("
                   "document.querySelector('[role=status]'),"
                   "{ childList: true, characterData: true, subtree: true })")
        self.answers["status"] = status(uptime_seconds=7200)
        self.browser.wait(f"{text_of('#line')}.includes('up 2 h 0 min')")
        self.assertEqual(self.value("window.spoken"), 0)
        self.answers["status"] = error(503, "busy")
        self.browser.wait("window.spoken > 0")

    # --- events ---

    def test_events_that_cannot_be_asked_are_told_there_and_all_else_goes_on(self):
        self.answers["events"] = events((NOW, "web: lowered."))
        self.show()
        for answer, words in ((error(500, "the store is off"), "the store is off"),
                              ((502, "<html>"), "HTTP 502")):
            self.answers["events"] = answer
            self.browser.wait(f"{text_of('#untold')} === 'Events cannot be read: {words}'")
        self.answers["status"] = status(mode="advise")
        self.browser.wait(f"{text_of('#line')}.includes('mode advise')")
        self.assertFalse(self.value(STALE))
        self.answers["events"] = events((NOW, "web: raised."))
        self.browser.wait(f"{text_of('#untold')} === '' && "
                          f"{text_of('#events')}.includes('web: raised.')")

    def test_limits_do_not_wait_for_events_and_explanations_that_hang(self):
        self.show()
        self.open_cards()
        self.answers.update(events=HANGS, explain=HANGS)
        self.await_rounds(1)
        self.answers["list"] = {"containers": [container(usage={"cpu_cores": 0.75})]}
        self.browser.wait(f"{text_of('article')}.includes('0.75 used')", PATIENCE / 2)
        self.assertFalse(self.value(STALE))
        self.browser.wait(f"{text_of('#untold')}.startsWith('Events cannot be read: ')",
                          PATIENCE + 10)
        self.assertFalse(self.value(STALE))

    def test_events_are_built_anew_only_where_they_changed(self):
        self.answers["events"] = events((NOW - 1, "web: lowered."))
        self.show()
        self.value("window.first = document.querySelector('#events li')")
        self.await_rounds(2)
        self.assertTrue(self.value("window.first.isConnected"))
        self.answers["events"] = events((NOW - 1, "web: lowered."), (NOW, "web: raised."))
        self.browser.wait("document.querySelectorAll('#events li').length === 2")

    def test_times_have_their_date_unless_it_is_today(self):
        self.answers["events"] = events((EARLIER, "web: lowered."), (NOW, "web: raised."))
        self.show()
        self.assertEqual(self.value(texts_of("#events time")),
                         [clock(NOW), clock(EARLIER, "%d/%m/%Y, %H:%M:%S")])
        stamps = self.value("[...document.querySelectorAll('#events time')]"
                            ".map((time) => time.dateTime)")
        self.assertEqual([stamp[:19] for stamp in stamps], [iso(NOW), iso(EARLIER)])

    # --- "Why?" ---

    def test_an_open_why_follows_what_the_daemon_says(self):
        self.answers["explain"] = explanation("at first", (EARLIER, "web: lowered."))
        self.show()
        self.open_cards()
        self.browser.wait(f"{text_of('details p')} === 'at first'")
        self.assertEqual(self.value(texts_of("details time")),
                         [clock(EARLIER, "%d/%m/%Y, %H:%M:%S")])
        self.assertEqual(self.value("document.querySelector('details time').dateTime")[:19],
                         iso(EARLIER))
        self.assertEqual(self.value(texts_of("details li span")), ["web: lowered."])
        self.answers["explain"] = explanation("later")
        self.browser.wait(f"{text_of('details p')} === 'later'")
        self.assertEqual(self.value(texts_of("details li")), [])

    def test_a_why_that_fails_keeps_nothing_of_the_answer_before(self):
        self.answers["explain"] = explanation("at first", (NOW, "web: lowered."))
        self.show()
        self.open_cards()
        self.browser.wait(f"{text_of('details p')} === 'at first'")
        self.answers["explain"] = error(404, "no container web")
        self.browser.wait(f"{text_of('details p')} === 'no container web'")
        self.assertEqual(self.value(texts_of("details li")), [])

    def test_of_many_open_cards_few_are_asked_about_at_once_and_each_has_its_turn(self):
        names = [f"web-{i}" for i in range(MOST_EXPLAINED + 2)]
        self.answers["list"] = {"containers": [container(name) for name in names]}
        self.show()
        self.open_cards()
        self.await_rounds(2)  # what opening them asked is answered
        self.stub.asked.clear()
        self.await_rounds(4)
        turns, explained = [], None  # a turn begins with its question for events
        for _, (verb, path) in list(self.stub.asked):
            if verb == "events":
                turns.append(explained)
                explained = []
            elif verb == "explain" and explained is not None:
                explained.append(path)
        turns = turns[1:]
        self.assertGreaterEqual(len(turns), 2)
        for turn in turns:
            self.assertEqual(len(set(turn)), MOST_EXPLAINED)
            self.assertEqual(len(turn), MOST_EXPLAINED)
        self.assertEqual({path for turn in turns for path in turn}, {f"/{name}" for name in names})

    def test_closed_cards_are_not_asked_about_and_take_no_turn(self):
        names = [f"web-{i}" for i in range(MOST_EXPLAINED + 2)]
        self.answers["list"] = {"containers": [container(name) for name in names]}
        self.show()
        self.value("[...document.querySelectorAll('details')].at(-1).open = true")
        self.await_rounds(2)
        explained = [path for _, (verb, path) in list(self.stub.asked) if verb == "explain"]
        self.assertEqual(set(explained), {f"/{names[-1]}"})
        self.assertGreater(len(explained), 1)

    # --- what does not work ---

    def complaints(self, **changed):
        self.answers["status"] = status(**changed)
        self.show()
        return self.value(texts_of("#complaints li"))

    def test_where_all_works_nothing_is_told(self):
        self.assertEqual(self.complaints(), [])

    def test_all_that_the_command_tells_is_told(self):
        store = {"state": "cannot write: disk full", "dropped_samples": 3, "dropped_entries": 2,
                 "damaged": 1, "quarantined": "/var/lib/cgphase/history.db.corrupt-1"}
        sources = [{"name": "PSI", "present": True, "detail": "here"},
                   {"name": "swap", "present": False, "detail": "the host has no swap"},
                   {"name": "eBPF", "present": False, "detail": ""}]
        self.assertEqual(
            self.complaints(kill_switch=True, companion_alive=False, store=store, sources=sources,
                            degraded=["somebody holds this host"]),
            ["The kill switch is on: every limit is the original, and nothing is lowered.",
             "The companion is not running: if the daemon dies, limits are not restored.",
             "somebody holds this host",
             "History: cannot write: disk full",
             "Lost from the history: 3 samples dropped because they could not be written; 2 "
             "journal entries dropped because they could not be written; 1 damaged blocks or "
             "rows; the earlier history file, kept as /var/lib/cgphase/history.db.corrupt-1",
             "swap off: the host has no swap",
             "eBPF off"])

    def test_nothing_is_told_twice(self):
        store = {"state": "disk full"}
        degraded = ["only observing, with the original limits: Kubernetes is here",
                    "the history is incomplete: disk full"]
        self.assertEqual(self.complaints(standing_down="Kubernetes is here", store=store,
                                         degraded=degraded), degraded)

    def test_what_only_observes_needs_no_companion_and_no_history(self):
        self.assertEqual(self.complaints(mode="observe", companion_alive=False,
                                         store={"state": "off"}), [])

    # --- containers ---

    def test_the_mode_is_as_the_list_of_the_command_has_it(self):
        rival = {"cpu": None, "memory": "rival"}
        self.answers["list"] = {"containers": [
            container("a", hands_off="Kubernetes", paused=True, blocked_by=rival, mode="observe"),
            container("b", paused=True, blocked_by=rival),
            container("c", blocked_by=rival),
            container("d", blocked_by={"cpu": "rival", "memory": "cool_down"}),
            container("e"),
            container("f", mode="advise")]}
        self.show()
        self.assertEqual(self.value(texts_of(".mode")),
                         ["hands off", "paused", "rival", "rival", "enforce", "advise"])
        self.assertEqual(self.value(texts_of(".mode.enforce")), ["enforce"])

    def test_a_limit_where_there_was_none_says_so(self):
        none = {"cpu_cores": None, "memory_bytes": None}
        self.answers["list"] = {"containers": [container(original=none)]}
        self.show()
        self.assertEqual(self.value(texts_of(".row span:last-child")),
                         ["0.25 used, limit 1.00, was none",
                          "1.0 GiB used, limit 2.0 GiB, was none"])

    def test_a_limit_that_did_not_change_and_none_at_all_say_nothing_of_before(self):
        none = {"cpu_cores": None, "memory_bytes": None}
        self.answers["list"] = {"containers": [
            container("a"), container("b", limits=none, original=none),
            container("c", original={"cpu_cores": 2, "memory_bytes": 4 * GIB})]}
        self.show()
        self.assertEqual(self.value(texts_of(".row span:last-child")),
                         ["0.25 used, limit 1.00", "1.0 GiB used, limit 2.0 GiB",
                          "0.25 used, no limit", "1.0 GiB used, no limit",
                          "0.25 used, limit 1.00, was 2.00",
                          "1.0 GiB used, limit 2.0 GiB, was 4.0 GiB"])

    def test_what_is_allowed_is_not_held(self):
        self.answers["list"] = {"containers": [
            container("a", blocked_by={"cpu": "allowed", "memory": "allowed"}),
            container("b", blocked_by={"cpu": "allowed", "memory": "cool_down"}),
            container("c", blocked_by={"cpu": "too_small", "memory": "too_small"}),
            container("d", blocked_by={"cpu": "too_small", "memory": "cool_down"})]}
        self.show()
        self.assertEqual(self.value("[...document.querySelectorAll('article')].map((card) => "
                                    "card.querySelector('details').previousSibling.textContent)"),
                         ["", "Blocked: memory cool down", "Blocked: too small",
                          "Blocked: CPU too small, memory cool down"])


if __name__ == "__main__":
    if browser.PATH is None:
        print("chromium is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
