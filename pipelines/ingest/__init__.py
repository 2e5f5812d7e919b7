"""From files to events: find the inputs, recognise each by its content, keep what it says, quarantine what cannot be read.

inputs      folders, files, .zip, .gz, git repositories: bounded bytes with a virtual path
json_text   JSON, JSON lines and damaged JSON as records with positions
runs        GitHub's run object: identity and time of a run
formats     registry of benchmark record formats (one module each, one line here)
intake      the plan: which input is what, events out, a summary
"""
