"""The falsifier: does the span survive a kinder reader, a constrained decoder, a longer reply?

``arms`` counts the same replies in several ways, ``compare`` sets them side by side, ``reading``
puts the findings together.
"""
