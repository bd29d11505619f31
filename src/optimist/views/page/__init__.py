"""The page: a run, or many, in a browser. `optimist watch` serves it, `optimist report` makes it a file.

    reading   what a run's record says, as documents; read again when it has changed
    many      the runs below a directory
    document  one HTML file: style, script and (for a report) data in it; it asks nobody for anything
    server    the page on loopback, to be asked for what is new
    report    the page with all data in it
    static/   the page itself: everything is drawn in the browser, in both cases by the same script

It reads recorded runs only, and runs nobody's code.
"""
